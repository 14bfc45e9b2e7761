#include "app/scenario/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "app/json/schema.h"
#include "app/scenario/crossing_search.h"

namespace moelab {
namespace {

/// [low, 2 low, 4 low, …, high].
Json log2_range(const Json& bounds, const std::string& place) {
  const std::string needs = "needs [low, high], whole numbers with high = low · 2^k";
  if (!bounds.is_array()) throw UserError(place, "got " + abbreviated(bounds) + ", " + needs);
  if (bounds.size() != 2)
    throw UserError(place, "got " + std::to_string(bounds.size()) + " values, " + needs);
  const Shape bound = Shape::count(1);
  const std::int64_t low = resolve(bound, bounds[0], join_path(place, 0));
  const std::int64_t high = resolve(bound, bounds[1], join_path(place, 1));
  Json values = Json::array();
  std::int64_t value = low;
  for (; value < high; value *= 2) values.push_back(value);  // high ≤ 2^53: doubling it does not overflow
  values.push_back(value);
  if (value != high) throw UserError(place, "got " + abbreviated(bounds) + ", " + needs);
  return values;
}

void check_distinct(const SweepAxis& axis, const std::string& place) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < axis.steps.size(); ++i) {
    Json values = Json::array();
    for (const Override& change : axis.steps[i]) values.push_back(change.value);
    if (seen.insert(canonical_text(values)).second) continue;
    throw UserError(join_path(place, i),
                    "got " + abbreviated(values[0]) + " a second time, needs distinct values");
  }
}

/// Lists of values by path.
void check_lists(const Json& lists, const std::string& place) {
  if (!lists.is_object() || lists.empty())
    throw UserError(place, "got " + abbreviated(lists) + ", needs an object {path: [values], …}");
  for (const auto& [path, values] : lists.items()) {
    if (values.is_array() && !values.empty()) continue;
    throw UserError(join_path(place, path),
                    "got " + abbreviated(values) + ", needs a list of at least one value");
  }
}

SweepAxis read_zip(const Json& lists, const std::string& place) {
  check_lists(lists, place);
  SweepAxis axis;
  const std::size_t length = lists.front().size();
  axis.steps.resize(length);
  for (const auto& [path, values] : lists.items()) {
    const std::string here = join_path(place, path);
    if (values.size() != length) {
      throw UserError(here, "got " + std::to_string(values.size()) + " values, needs " +
                                std::to_string(length) + " as the first list of the zip has");
    }
    axis.paths.push_back(path);
    for (std::size_t i = 0; i < length; ++i)
      axis.steps[i].push_back({path, values[i], here, join_path("", i)});
  }
  check_distinct(axis, join_path(place, axis.paths.front()));
  return axis;
}

/// An axis whose values are searched, with its ends.
SweepAxis read_searched(const std::string& path, const Json& crossing, const std::string& place) {
  SweepAxis axis{{path}, {}, resolve(crossing_shape(), crossing, join_path(place, "crossing"))};
  for (const char* end : {"low", "high"})
    axis.steps.push_back({{path, CrossingSearch::value(axis.crossing.at(end)),
                           join_path(join_path(place, "crossing"), end), ""}});
  return axis;
}

SweepAxis read_axis(const std::string& path, const Json& given, const std::string& place) {
  SweepAxis axis{{path}, {}, {}};
  Json values = given;
  if (given.is_object()) {
    for (const auto& [key, bounds] : given.items()) {
      if (key != "log2range" && key != "crossing")
        throw UserError(join_path(place, key), unknown_name("range", key, {"log2range", "crossing"}));
    }
    if (given.size() != 1) {
      throw UserError(place,
                      "got " + abbreviated(given) +
                          ", needs a list of values, {\"log2range\": [low, high]} or {\"crossing\": {…}}");
    }
    if (given.contains("crossing")) return read_searched(path, given.at("crossing"), place);
    values = log2_range(given.at("log2range"), join_path(place, "log2range"));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    axis.steps.push_back({{path, values[i], place, given.is_array() ? join_path("", i) : ""}});
  }
  check_distinct(axis, place);
  return axis;
}

}  // namespace

void check_zip(const Json& document) {
  if (!document.contains("sweep") || !document.at("sweep").is_object()) return;
  const Json& sweep = document.at("sweep");
  if (sweep.contains("zip")) check_lists(sweep.at("zip"), "sweep.zip");
}

std::vector<SweepAxis> read_sweep(const Json& sweep) {
  std::vector<SweepAxis> axes;
  std::vector<std::string> paths;
  for (const auto& [key, value] : sweep.items()) {
    const std::string place = join_path("sweep", key);
    axes.push_back(key == "zip" ? read_zip(value, place) : read_axis(key, value, place));
    for (const std::string& path : axes.back().paths) {
      for (const std::string& earlier : paths) {
        if (is_within(earlier, path))
          throw UserError(place, "'" + path + "' replaces '" + earlier + "', swept, too");
      }
      paths.push_back(path);
    }
  }
  const auto is_grid = [](const SweepAxis& axis) { return axis.crossing.is_null(); };
  const auto searched = std::stable_partition(axes.begin(), axes.end(), is_grid);
  if (axes.end() - searched > 1) {
    throw UserError(
        join_path("sweep", axes.back().paths.front()),
        "is searched for a crossing beside '" + searched->paths.front() + "'; needs one path that is");
  }
  return axes;
}

Override searched_override(const SweepAxis& axis, Json value) {
  for (const std::vector<Override>& end : axis.steps)
    if (end.front().value == value) return end.front();  // the scenario says where that stands
  const std::string& path = axis.paths.front();
  return {path, std::move(value), join_path(join_path("sweep", path), "crossing"), ""};
}

std::size_t count_points(const std::vector<SweepAxis>& axes, std::size_t limit) {
  std::size_t points = 1;
  for (const SweepAxis& axis : axes) {
    if (points > limit) break;
    points *= axis.steps.size();
  }
  return points;
}

std::vector<Override> sweep_point(const std::vector<SweepAxis>& axes, std::size_t index) {
  std::vector<const std::vector<Override>*> chosen(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    chosen[i] = &axes[i].steps[index % axes[i].steps.size()];
    index /= axes[i].steps.size();
  }
  std::vector<Override> point;
  for (const std::vector<Override>* step : chosen) point.insert(point.end(), step->begin(), step->end());
  return point;
}

}  // namespace moelab
