#include "app/scenario/sweep_values.h"

namespace moelab {

SweepValue read_sweep_value(const Json& value) {
  std::optional<double> number;
  if (value.is_number()) number = value.get<double>();
  return {value.dump(), canonical_text(value), number};
}

Json to_json(const SweepValue& value) {
  return Json::parse(value.text());
}

std::string value_text(const SweepValue& value) {
  const Json json = to_json(value);
  return json.is_string() ? json.get<std::string>() : value.text();
}

SweepPoint read_point(const Json& object) {
  SweepPoint point;
  for (const auto& [path, value] : object.items()) point.emplace_back(path, read_sweep_value(value));
  return point;
}

SweepPoint read_point(const std::vector<std::pair<std::string, Json>>& coordinates) {
  SweepPoint point;
  for (const auto& [path, value] : coordinates) point.emplace_back(path, read_sweep_value(value));
  return point;
}

Json point_json(const SweepPoint& point) {
  Json json = Json::object();
  for (const auto& [path, value] : point) json[path] = to_json(value);
  return json;
}

Json point_json(const std::vector<std::pair<std::string, Json>>& coordinates) {
  Json json = Json::object();
  for (const auto& [path, value] : coordinates) json[path] = value;
  return json;
}

}  // namespace moelab
