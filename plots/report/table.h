#pragma once

/// Tables of texts, and how each format writes a text so that it stays a text.

#include <string>
#include <string_view>
#include <vector>

namespace moelab {

/// A table whose cells are texts. Every row has as many cells as the head, if there is a head.
struct Table {
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};
  std::string caption = {};  ///< renderers leave it to the caller, who knows where it belongs

  bool empty() const { return rows.empty(); }
};

/// Left-aligned columns, two spaces apart. Widths count characters, not bytes.
std::string text_table(const Table& table);
std::string markdown_table(const Table& table);
/// An HTML table of this class. A narrow page breaks the rows of class "points" into lines, each with the
/// name of its column.
std::string html_table(const Table& table, const std::string& css_class = "");
/// CSV with cells by csv_cell().
std::string csv_table(const Table& table);

// CSV.

/// A text as a cell of CSV. Every table that moelab writes follows these rules:
/// - A text that a spreadsheet could take for a formula gets an apostrophe before it. Such a text is no
/// number
///   and begins with = + - @, a tab or an apostrophe. A reader removes one apostrophe to get the text back.
/// - visible_text writes control characters out, except line feeds and tabs.
/// - RFC 4180 says which cells are quoted.
std::string csv_cell(std::string_view text);

/// The same for a table that gnuplot reads. The cell is always quoted and on one line, since scripts count
/// lines. Single quotes replace double quotes, which gnuplot misreads when they are doubled.
std::string gnuplot_csv_cell(std::string_view text);

// Markdown.

/// Text on one line without markup, also in tables and at the beginning of a line: no emphasis, HTML or link.
/// Viewers still link addresses with http: or https:. Control characters are written out.
std::string markdown_text(const std::string& text);

/// The anchor of a heading: small letters, digits, hyphens and underscores, with hyphens for spaces.
std::string anchor(const std::string& heading);

// HTML.

/// Text in an element or in a quoted attribute: no markup, link or control character.
std::string html_text(std::string_view text);

/// JSON text in a `<script>` element. No "<" inside ends the element.
std::string script_text(std::string_view json);

}  // namespace moelab
