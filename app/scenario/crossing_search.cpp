#include "app/scenario/crossing_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/scenario/tune_ranges.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// How far from the middle, as a share of the bracket, rounding may put a value.
constexpr double kRoundedBy = 1.0 / 64;
/// Keeps the number of points of a search small.
constexpr double kLeastResolution = 1e-4;

std::int64_t nearest_whole(double value) {
  return static_cast<std::int64_t>(std::llround(value));
}

/// What a scenario and a plan say by the same names.
CrossingSearch search_of(const std::string& path, const Json& given) {
  CrossingSearch search;
  search.path = path;
  search.metric = given.at("metric");
  if (given.contains("level")) search.level = given.at("level").get<double>();
  search.against = given.value("against", "");
  search.arm = given.value("arm", "");
  search.low = given.at("low");
  search.high = given.at("high");
  search.is_log = given.at("scale") == "log";
  search.resolution = given.at("resolution");
  return search;
}

}  // namespace

Shape crossing_shape() {
  Shape resolution = Shape::fraction();
  resolution.minimum = kLeastResolution;
  return Shape::object(
      {{"metric", Shape::text(),
        "a metric, or an expression of metrics and swept paths; its mean over seeds, geometric if positive"},
       {"level", Shape::real(), "the number that it crosses (or give against)", kOptional},
       {"against", Shape::text(), "an arm: the metric crosses that of this arm, in place of a level",
        kOptional},
       {"arm", Shape::text(),
        "whose curve places the points, at which all arms then run (default: every arm has its own)",
        kOptional},
       {"low", Shape::real(), "least value, run in any case"},
       {"high", Shape::real(), "greatest value, run in any case"},
       {"scale", Shape::choice({"linear", "log"}), "on which the range is halved", "linear"},
       {"resolution", resolution, "share of the range that is narrow enough; whole numbers end at neighbours",
        0.04}});
}

CrossingSearch CrossingSearch::read(const std::string& path, const Json& given, const Json& document) {
  const std::string place = join_path(join_path("sweep", path), "crossing");
  CrossingSearch search = search_of(path, given);
  search.is_whole = is_whole_field(document, path, place);
  if (search.level.has_value() == !search.against.empty())
    throw UserError(place, search.level ? "has level and against; needs one of them"
                                        : "needs level (a number) or against (an arm)");
  if (!search.against.empty() && search.arm.empty())
    throw UserError(place, "has against, needs arm: the one whose metric is held against it");
  if (!search.against.empty() && search.arm == search.against)
    throw UserError(join_path(place, "against"), "is the arm itself");
  if (search.low >= search.high)
    throw UserError(join_path(place, "high"),
                    fmt::format("got {}, needs more than low = {}", search.high, search.low));
  if (search.is_log && search.low <= 0)
    throw UserError(join_path(place, "low"),
                    fmt::format("got {}, needs a number above 0 on a log scale", search.low));
  return search;
}

std::optional<CrossingSearch> CrossingSearch::of_plan(const Json& crossing) {
  if (crossing.is_null()) return std::nullopt;
  CrossingSearch search = search_of(crossing.at("path"), crossing);
  search.is_whole = crossing.at("whole");
  search.placed = crossing.at("placed").get<std::vector<std::vector<Json>>>();
  return search;
}

Json CrossingSearch::to_json() const {
  Json json = {{"path", path},
               {"metric", metric},
               {"low", low},
               {"high", high},
               {"scale", is_log ? "log" : "linear"},
               {"whole", is_whole},
               {"resolution", resolution},
               {"placed", placed}};
  if (level) json["level"] = *level;
  if (!against.empty()) json["against"] = against;
  if (!arm.empty()) json["arm"] = arm;
  return json;
}

bool CrossingSearch::searches(const std::string& searched) const {
  return arm.empty() || arm == searched;
}

double CrossingSearch::scaled(double value) const {
  return is_log ? std::log(value) : value;
}

double CrossingSearch::unscaled(double place) const {
  return is_log ? std::exp(place) : place;
}

std::optional<double> CrossingSearch::middle(double from, double to) const {
  const double width = scaled(to) - scaled(from);
  if (width <= resolution * (scaled(high) - scaled(low))) return std::nullopt;
  const double exact = unscaled(scaled(from) + width / 2);
  if (is_whole) {
    if (nearest_whole(to) - nearest_whole(from) < 2) return std::nullopt;
    return static_cast<double>(
        std::clamp(nearest_whole(exact), nearest_whole(from) + 1, nearest_whole(to) - 1));
  }
  for (int digits = 1; digits <= 17; ++digits) {
    const double rounded = std::strtod(fmt::format("{:.{}g}", exact, digits).c_str(), nullptr);
    if (is_log && rounded <= 0) continue;
    if (std::abs(scaled(rounded) - scaled(exact)) <= kRoundedBy * width) return rounded;
  }
  return std::nullopt;  // as near as numbers are
}

int CrossingSearch::most_within(double from, double to) const {
  const std::optional<double> between = middle(from, to);
  return between ? 1 + std::max(most_within(from, *between), most_within(*between, to)) : 0;
}

Json CrossingSearch::value(double number) {
  const bool is_integral = std::abs(number) < 1e15 && std::floor(number) == number;
  return is_integral ? Json(nearest_whole(number)) : Json(number);
}

}  // namespace moelab
