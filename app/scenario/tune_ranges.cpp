#include "app/scenario/tune_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/json/schema.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_shape.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// A tuned value is set after an arm's own, and would silently take the place of what the arm sets above or
/// below it.
void check_arms(const std::string& path, const Json& arms, const std::string& place) {
  for (const auto& [arm, overrides] : arms.items()) {
    for (const auto& [own, value] : overrides.items()) {
      if (own == path || (!is_replaced(own, path) && !is_within(path, own))) continue;
      throw UserError(
          place, fmt::format("arm '{}' sets {}; needs arms that set {} itself, or nothing above or below it",
                             arm, own, path));
    }
  }
}

/// Whether a value of the shape may be a whole number, or any number; neither for what is none.
struct NumberKind {
  bool is_whole = false, is_real = false;
};
NumberKind number_kind(const Shape& shape) {
  NumberKind kind{shape.type == Shape::Type::count, shape.type == Shape::Type::real};
  for (const Shape& alternative : shape.alternatives) {
    const NumberKind own = number_kind(alternative);
    kind.is_whole |= own.is_whole;
    kind.is_real |= own.is_real;
  }
  return kind;
}

/// Refuses a path that no field has, with the nearest name where one key of it is wrong.
[[noreturn]] void refuse_unknown_field(const Json& base, const std::string& path, const std::string& place) {
  Json config = Json::object();
  for (const Field& field : config_shape().fields)
    if (base.contains(field.name)) config[field.name] = base.at(field.name);
  try {
    const Override change{path, 1, place, ""};
    apply_overrides(config_shape(), {&change, 1}, config);
    resolve(config_shape(), config, "");
  } catch (const InvalidOption& error) {
    if (error.path() == place || (!error.path().empty() && is_within(path, error.path())))
      throw UserError(place, error.message());
  }
  throw UserError(place, "is no field of the scenario");
}

}  // namespace

bool is_whole_field(const Json& base, const std::string& path, const std::string& place) {
  const Shape* const shape = find_shape(config_shape(), base, path);
  if (shape == nullptr) refuse_unknown_field(base, path, place);
  const NumberKind kind = number_kind(*shape);
  if (!kind.is_whole && !kind.is_real) throw UserError(place, "is not a number of the scenario");
  return kind.is_whole && !kind.is_real;
}

Json TuneRange::at(double share, int digits) const {
  const double value = is_log ? low * std::pow(high / low, share) : low + (high - low) * share;
  const double rounded = std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
  if (is_whole)
    return static_cast<std::int64_t>(std::clamp(std::round(rounded), std::ceil(low), std::floor(high)));
  return std::clamp(rounded, low, high);
}

double TuneRange::share_of(const Json& value) const {
  const double number = value.get<double>();
  return is_log ? std::log(number / low) / std::log(high / low) : (number - low) / (high - low);
}

std::vector<TuneRange> read_tune_ranges(const Json& tune, const Json& base, std::span<const SweepAxis> axes) {
  std::vector<TuneRange> ranges;
  for (const auto& [path, range] : tune.items()) {
    const std::string place = join_path("tune", path);
    const bool is_whole = is_whole_field(base, path, place);
    for (const SweepAxis& axis : axes) {
      for (const std::string& swept : axis.paths) {
        if (is_within(path, swept) || is_within(swept, path))
          throw UserError(place, "the sweep sets '" + swept + "'; needs a field that is not swept");
      }
    }
    for (const TuneRange& earlier : ranges) {
      if (is_within(path, earlier.path) || is_within(earlier.path, path))
        throw UserError(place, fmt::format("'{}' is tuned, too; needs one of the two", earlier.path));
    }
    TuneRange read{path, range.at("low"), range.at("high"), range.value("scale", "log") == "log", is_whole};
    if (read.low >= read.high)
      throw UserError(join_path(place, "high"),
                      fmt::format("got {}, needs more than low = {}", read.high, read.low));
    if (read.is_log && read.low <= 0)
      throw UserError(join_path(place, "low"),
                      fmt::format("got {}, needs a number above 0 on a log scale", read.low));
    for (const char* end : {"low", "high"})
      resolve(*find_shape(config_shape(), base, path), range.at(end), join_path(place, end));
    check_arms(path, base.value("arms", Json::object()), place);
    ranges.push_back(std::move(read));
  }
  return ranges;
}

}  // namespace moelab
