#pragma once

/// Texts in tables for programs and spreadsheets.

#include <string>
#include <string_view>

namespace moelab {

/// One text as a cell of CSV, the rule of every table that moelab writes: a text that begins with = + - @ or
/// an apostrophe and is no number gets an apostrophe before it, so that no spreadsheet takes it for a
/// formula, and a reader gets the text back by removing one apostrophe. Control characters are written as
/// visible_text writes them, which leaves a line feed and a tab; a tab in the first place gets the
/// apostrophe, too. Quoted by RFC 4180 where it has to be.
std::string csv_cell(std::string_view text);

/// The same for a table that gnuplot reads: always quoted, with single quotes for double ones, which gnuplot
/// misreads when they are doubled, and on one line, since scripts count lines.
std::string gnuplot_csv_cell(std::string_view text);

}  // namespace moelab
