#include "app/report/rates_markdown.h"

#include <fmt/format.h>

#include "app/report/markdown.h"
#include "app/run/rate_results.h"

namespace moelab {
namespace {

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += fmt::format(" {} |", markdown_text(cell));
  return text + "\n";
}

}  // namespace

std::string rates_markdown(const RunResults& results) {
  std::string text;
  for (const RateTable& table : rate_tables(results)) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", markdown_text(table.caption));
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      text += markdown_row(table.rows[row]);
      if (row > 0) continue;
      for (std::size_t column = 0; column < table.rows[0].size(); ++column) text += "|---";
      text += "|\n";
    }
  }
  return text;
}

}  // namespace moelab
