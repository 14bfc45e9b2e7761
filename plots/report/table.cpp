#include "plots/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "plots/texts.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool is_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && after == end;
}

/// The text as no spreadsheet takes for a formula and no terminal for a command.
std::string harmless(std::string_view text) {
  constexpr std::string_view kFormulaSigns = "=+-@\t\r'";
  const bool is_formula =
      !text.empty() && kFormulaSigns.find(text.front()) != std::string_view::npos && !is_number(text);
  return (is_formula ? "'" : "") + visible_text(text);
}

bool is_word_letter(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code >= 0x80 || std::isalnum(code) != 0;
}

/// Whether `letter` between these two letters has to be escaped everywhere.
bool is_markup(char letter, char before, char after) {
  constexpr std::string_view kAlways = "\\`*|$";
  if (kAlways.find(letter) != std::string_view::npos) return true;
  // Inside a word it is no emphasis, and names of metrics stay legible.
  if (letter == '_') return !is_word_letter(before) || !is_word_letter(after);
  return letter == '~' && (before != ' ' || after != ' ');
}

/// Whether all brackets enclose intervals: they are balanced, and no link follows.
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

/// The place of the letter that makes a heading, a list, a quotation or a rule of the line; npos without one.
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

std::size_t character_count(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

template <class Visit>
void each_row(const Table& table, const Visit& visit) {
  if (!table.head.empty()) visit(table.head);
  for (const std::vector<std::string>& row : table.rows) visit(row);
}

}  // namespace

std::string text_table(const Table& table) {
  std::vector<std::size_t> widths;
  each_row(table, [&](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], character_count(row[i]));
  });
  std::string text;
  each_row(table, [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - character_count(row[i]) + 2, ' ');
    }
    text += '\n';
  });
  return text;
}

std::string markdown_table(const Table& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (const std::string& cell : row) text += fmt::format("| {} ", markdown_text(cell));
    text += "|\n";
  };
  add(table.head);
  for (std::size_t column = 0; column < table.head.size(); ++column) text += "|---";
  text += "|\n";
  for (const std::vector<std::string>& row : table.rows) add(row);
  return text;
}

std::string html_table(const Table& table, const std::string& css_class) {
  constexpr std::size_t kLongCell = 48;  // longer texts have several lines
  std::string html = fmt::format("<div class=\"scroll\"><table class=\"{}\"><tr>", css_class);
  for (const std::string& head : table.head) html += fmt::format("<th>{}</th>", html_text(head));
  for (const std::vector<std::string>& row : table.rows) {
    html += "</tr><tr>";
    for (std::size_t column = 0; column < row.size(); ++column)
      html += fmt::format("<td data-of=\"{}\"{}>{}</td>", html_text(table.head.at(column)),
                          row[column].size() > kLongCell ? " class=\"long\"" : "",
                          html_text(with_minus_signs(row[column])));
  }
  return html + "</tr></table></div>\n";
}

std::string csv_table(const Table& table) {
  std::string text;
  each_row(table, [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(row[i]);
    text += '\n';
  });
  return text;
}

std::string csv_cell(std::string_view text) {
  const std::string plain = harmless(text);
  if (plain.find_first_of(",\"\n") == std::string::npos) return plain;
  std::string quoted = "\"";
  for (const char letter : plain) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + '"';
}

std::string gnuplot_csv_cell(std::string_view text) {
  std::string plain = visible_line(harmless(text));
  std::replace(plain.begin(), plain.end(), '"', '\'');
  return "\"" + plain + "\"";
}

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

std::string anchor(const std::string& heading) {
  std::string name;
  for (const char letter : heading) {
    if (letter == ' ') name += '-';
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) || letter == '_' || letter == '-') name += static_cast<char>(std::tolower(code));
  }
  return name;
}

std::string html_text(std::string_view text) {
  std::string html;
  for (const char letter : visible_text(text)) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

std::string script_text(std::string_view json) {
  std::string text;
  for (const char letter : visible_text(json))
    text += letter == '<' ? std::string("\\u003c") : std::string(1, letter);
  return text;
}

}  // namespace moelab
