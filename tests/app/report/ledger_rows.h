#pragma once

/// Rows of a ledger's tables, for tests.

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "app/scenario/json.h"

namespace moelab {

/// The rows of a table as objects with a field for each column.
inline Json rows_of(const Json& table) {
  Json rows = Json::array();
  for (const Json& row : table.at("data")) {
    REQUIRE(row.size() == table.at("columns").size());
    Json object;
    for (std::size_t i = 0; i < row.size(); ++i)
      object[table.at("columns").at(i).get<std::string>()] = row[i];
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace moelab
