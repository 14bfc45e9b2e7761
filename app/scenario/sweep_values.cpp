#include "app/scenario/sweep_values.h"

#include <charconv>
#include <cmath>

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

Json read_written_value(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? read_written_value(Json(text)) : value;
}

Json read_written_value(const Json& value) {
  if (!value.is_string()) return value;
  const std::string text = value.get<std::string>();
  if (Json::accept(text)) return value;  // it stood in quotes
  const std::optional<double> number = read_written_number(text);
  return number ? Json(*number) : value;
}

std::optional<double> read_written_number(const std::string& text) {
  const char* const end = text.data() + text.size();
  const bool is_signed = text.starts_with('+') && !text.starts_with("+-");
  double number = 0;
  const auto [after, error] = std::from_chars(text.data() + (is_signed ? 1 : 0), end, number);
  if (error != std::errc() || after != end || !std::isfinite(number)) return std::nullopt;
  return number;
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
