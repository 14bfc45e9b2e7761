#include "app/figures/shown_arms.h"

#include <algorithm>

namespace moelab {

bool is_imported(const ResultRow& row) {
  return row.cell.starts_with(kImportedCell);
}

std::vector<std::string> imported_arms(const ResultTable& table) {
  std::vector<std::string> arms;
  for (const std::string& arm : table.arms) {
    const auto is_of_arm = [&](const ResultRow& row) { return row.arm == arm; };
    const auto row = std::find_if(table.rows.rbegin(), table.rows.rend(), is_of_arm);
    if (row != table.rows.rend() && is_imported(*row)) arms.push_back(arm);
  }
  return arms;
}

std::string shown_arm(const DisplayNames& names, const ResultTable& table, const std::string& arm) {
  const std::vector<std::string> imported = imported_arms(table);
  const bool is_own = std::find(imported.begin(), imported.end(), arm) == imported.end();
  return names.arm(arm) + (is_own ? "" : " (imported)");
}

std::vector<std::string> own_shown_arms(const Json& figure, const ResultTable& table) {
  if (figure.contains("arms")) return figure.at("arms").get<std::vector<std::string>>();
  const std::size_t imported = imported_arms(table).size();
  return {table.arms.begin(), table.arms.end() - static_cast<std::ptrdiff_t>(imported)};
}

std::vector<std::string> shown_arms(const Json& figure, const ResultTable& table) {
  std::vector<std::string> arms = own_shown_arms(figure, table);
  for (std::string& arm : imported_arms(table)) arms.push_back(std::move(arm));
  return arms;
}

}  // namespace moelab
