#pragma once

/// Texts in Markdown documents.

#include <string>
#include <vector>

#include "app/run/results.h"

namespace moelab {

/// Text on one line with what Markdown would take for markup escaped, in tables and at the beginning of a
/// line, too: no emphasis, no HTML, no link but the addresses with http: or https: that viewers link of
/// themselves. Control characters are written out.
std::string markdown_text(const std::string& text);

/// A file's name as the target of a link: what is no letter, digit, . _ - or / is percent-encoded.
std::string markdown_target(const std::string& name);

/// Text between backticks, more of them where it has some itself.
std::string markdown_code(const std::string& text);

/// Rows of texts as a table, the first its head.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// A line of an indented block of code, where nothing is markup.
std::string markdown_code_line(const std::string& text);

/// The anchor that a heading gets: small letters, digits, hyphens and underscores, spaces as
/// hyphens.
std::string anchor(const std::string& heading);

/// The tables of rate_tables(), each under its caption, as Markdown; empty where the plan has no figure of
/// rates.
std::string rates_markdown(const RunResults& results);

}  // namespace moelab
