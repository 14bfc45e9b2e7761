#include "app/report/rates_markdown.h"

#include <fmt/format.h>

#include "app/report/markdown.h"
#include "app/run/rate_results.h"

namespace moelab {
std::string rates_markdown(const RunResults& results) {
  std::string text;
  for (const RateTable& table : rate_tables(results)) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", markdown_text(table.caption));
    text += markdown_table(table.rows);
  }
  return text;
}

}  // namespace moelab
