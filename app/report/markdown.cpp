#include "app/report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "app/run/results.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool is_word_letter(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code >= 0x80 || std::isalnum(code) != 0;
}

/// Whether `letter`, between these two, has to be escaped wherever it stands.
bool is_markup(char letter, char before, char after) {
  constexpr std::string_view kAlways = "\\`*|$";
  if (kAlways.find(letter) != std::string_view::npos) return true;
  // Within a word it is no emphasis, and names of metrics stay legible.
  if (letter == '_') return !is_word_letter(before) || !is_word_letter(after);
  return letter == '~' && (before != ' ' || after != ' ');
}

/// Whether brackets are those of intervals: no link follows, and none closes or opens that of a link which
/// the line stands in.
bool has_plain_brackets(std::string_view line) {
  int open = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '[') ++open;
    if (line[i] != ']') continue;
    if (--open < 0) return false;
    if (i + 1 < line.size() && std::string_view("([:").find(line[i + 1]) != std::string_view::npos)
      return false;
  }
  return open == 0;
}

/// The place of the letter that would make a heading, a list, a quotation or a rule of the line; npos without
/// one.
std::size_t block_markup(std::string_view line) {
  if (line.empty()) return std::string_view::npos;
  constexpr std::string_view kBullets = "-+=";
  if (line[0] == '#' || line[0] == '>') return 0;
  if (kBullets.find(line[0]) != std::string_view::npos) {
    const bool is_alone = line.size() == 1 || line[1] == ' ' || line[1] == line[0];
    return is_alone ? 0 : std::string_view::npos;
  }
  const std::size_t digits = line.find_first_not_of("0123456789");
  const bool is_numbered = digits != 0 && digits != std::string_view::npos &&
                           (line[digits] == '.' || line[digits] == ')') &&
                           (digits + 1 == line.size() || line[digits + 1] == ' ');
  return is_numbered ? digits : std::string_view::npos;
}

}  // namespace

std::string markdown_text(const std::string& text) {
  std::string line = visible_line(text);
  line.erase(0, line.find_first_not_of(' '));  // four spaces would make code of it
  const std::size_t block = block_markup(line);
  const std::string_view brackets = has_plain_brackets(line) ? "" : "[]";
  std::string escaped;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i], before = i == 0 ? ' ' : line[i - 1],
               after = i + 1 == line.size() ? ' ' : line[i + 1];
    if (letter == '<') {
      escaped += "&lt;";
    } else if (letter == '&' && (after == '#' || is_word_letter(after))) {
      escaped += "&amp;";
    } else {
      const bool is_special =
          i == block || brackets.find(letter) != std::string_view::npos || is_markup(letter, before, after);
      if (is_special) escaped += '\\';
      escaped += letter;
    }
  }
  return escaped;
}

std::string markdown_target(const std::string& name) {
  constexpr std::string_view kPlain = "._-/";
  std::string target;
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    const bool is_plain =
        code < 0x80 && (std::isalnum(code) != 0 || kPlain.find(letter) != std::string_view::npos);
    target += is_plain ? std::string(1, letter) : fmt::format("%{:02X}", code);
  }
  return target;
}

std::string markdown_code(const std::string& text) {
  const std::string line = visible_line(text);
  std::size_t longest = 0, run = 0;
  for (const char letter : line) {
    run = letter == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`'), room = longest > 0 ? " " : "";
  return fence + room + line + room + fence;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const std::string& cell : rows[row]) text += fmt::format("| {} ", markdown_text(cell));
    text += "|\n";
    if (row > 0) continue;
    for (std::size_t column = 0; column < rows[0].size(); ++column) text += "|---";
    text += "|\n";
  }
  return text;
}

std::string markdown_code_line(const std::string& text) {
  return "    " + visible_line(text);
}

std::string anchor(const std::string& heading) {
  std::string name;
  for (const char letter : heading) {
    if (letter == ' ') name += '-';
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) || letter == '_' || letter == '-') name += static_cast<char>(std::tolower(code));
  }
  return name;
}

std::string rates_markdown(const RunResults& results) {
  std::string text;
  for (const RateTable& table : rate_tables(results)) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", markdown_text(table.caption));
    text += markdown_table(table.rows);
  }
  return text;
}

}  // namespace moelab
