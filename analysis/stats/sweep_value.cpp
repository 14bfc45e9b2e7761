#include "analysis/stats/sweep_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace moelab {

SweepValue SweepValue::of_number(double number) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  const bool is_whole = std::trunc(number) == number && std::abs(number) < kTwoTo63;
  std::string text = is_whole ? fmt::to_string(static_cast<std::int64_t>(number)) : fmt::to_string(number);
  return {text, text, number};
}

SweepValue SweepValue::of_name(const std::string& name) {
  std::string text = "\"";
  for (const char letter : name) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  text += '"';
  return {text, text, std::nullopt};
}

const SweepValue* coordinate_of(const SweepPoint& point, const std::string& path) {
  const auto found = std::find_if(point.begin(), point.end(), [&](const auto& c) { return c.first == path; });
  return found == point.end() ? nullptr : &found->second;
}

bool has_coordinates(const SweepPoint& point, const SweepPoint& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& coordinate) {
    return std::find(point.begin(), point.end(), coordinate) != point.end();
  });
}

std::string point_text(const SweepPoint& point) {
  std::string text;
  for (const auto& [path, value] : point)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", path, value.text());
  return text;
}

}  // namespace moelab
