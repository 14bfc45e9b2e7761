#pragma once

/// What tests read of a page in Markdown.

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace moelab {

/// The project's folder.
inline const std::filesystem::path kRoot = std::filesystem::path(MOELAB_TEST_DATA) / "..";

/// What stands in a text between backticks.
inline std::vector<std::string> quoted_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream parts(text);
  std::string part;
  for (bool inside = false; std::getline(parts, part, '`'); inside = !inside) {
    if (inside) names.push_back(part);
  }
  return names;
}

/// The cells of the page's table rows.
inline std::vector<std::vector<std::string>> table_rows(const std::string& page) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    std::istringstream cells(line.substr(2));
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  return rows;
}

}  // namespace moelab
