#include "plots/csv_cell.h"

#include <algorithm>
#include <charconv>

#include "sim/base/visible_text.h"

namespace moelab {
namespace {

bool is_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && after == end;
}

/// No formula to a spreadsheet, no command to a terminal.
std::string harmless(std::string_view text) {
  constexpr std::string_view kFormulaSigns = "=+-@\t\r'";
  const bool is_formula =
      !text.empty() && kFormulaSigns.find(text.front()) != std::string_view::npos && !is_number(text);
  return (is_formula ? "'" : "") + visible_text(text);
}

}  // namespace

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

}  // namespace moelab
