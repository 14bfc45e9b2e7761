#include "analysis/stats/result_table.h"

#include <algorithm>

namespace moelab {

Json point_json(const SweepPoint& point) {
  Json json = Json::object();
  for (const auto& [path, value] : point) json[path] = value;
  return json;
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

const Json* ResultRow::coordinate(const std::string& path) const {
  const auto found = std::find_if(point.begin(), point.end(), [&](const auto& c) { return c.first == path; });
  return found == point.end() ? nullptr : &found->second;
}

bool ResultRow::is_at(const Json& where) const {
  return std::all_of(where.items().begin(), where.items().end(), [&](const auto& wanted) {
    const Json* const value = coordinate(wanted.key());
    return value && *value == wanted.value();
  });
}

}  // namespace moelab
