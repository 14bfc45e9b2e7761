#include "analysis/stats/claim_sides.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/error.h"

namespace moelab {
namespace {

SweepPoint coordinates(const Json& object, const ResultTable& table, const std::string& path) {
  SweepPoint point;
  for (const auto& [name, value] : object.items()) {
    if (std::find(table.sweep_paths.begin(), table.sweep_paths.end(), name) == table.sweep_paths.end())
      throw UserError(join_path(path, name), unknown_name("swept path", name, table.sweep_paths));
    point.emplace_back(name, value);
  }
  return point;
}

bool matches(const SweepPoint& point, const SweepPoint& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& coordinate) {
    return std::find(point.begin(), point.end(), coordinate) != point.end();
  });
}

std::vector<SweepPoint> grid_points(const ResultTable& table) {
  std::vector<SweepPoint> points;
  for (const ResultRow& row : table.rows)
    if (std::find(points.begin(), points.end(), row.point) == points.end()) points.push_back(row.point);
  return points;
}

std::vector<SweepPoint> points_matching(const std::vector<SweepPoint>& grid, const SweepPoint& wanted) {
  std::vector<SweepPoint> matching;
  for (const SweepPoint& point : grid)
    if (matches(point, wanted)) matching.push_back(point);
  return matching;
}

/// The grid point that a side takes when the claim stands at `point`. A `where` that names a single grid
/// point on its own names it whatever the rest of `point` says: paths swept in step (zip) move together.
SweepPoint side_point(const std::vector<SweepPoint>& grid, const SweepPoint& point, const SweepPoint& where,
                      const std::string& path) {
  if (where.empty()) return point;
  const std::vector<SweepPoint> named = points_matching(grid, where);
  if (named.size() == 1) return named.front();
  SweepPoint moved = point;
  for (const auto& [name, value] : where)
    for (auto& coordinate : moved)
      if (coordinate.first == name) coordinate.second = value;
  if (points_matching(grid, moved).empty())
    throw UserError(join_path(path, "where"), fmt::format("no sweep point has {}", point_text(moved)));
  return moved;
}

ClaimSide read_side(const Json& side, const ResultTable& table, const std::string& path) {
  ClaimSide read;
  read.factor = side.value("factor", 1.0);
  if (side.contains("value")) {
    read.value = side.at("value").get<double>();
    return read;
  }
  read.arm = side.at("arm").get<std::string>();
  if (std::find(table.arms.begin(), table.arms.end(), read.arm) == table.arms.end())
    throw UserError(join_path(path, "arm"), unknown_name("arm", read.arm, table.arms));
  read.metric = side.at("metric").get<std::string>();
  read.relative_to = side.value("relative_to", "");
  read.distance_from = side.value("distance_from", "");
  if (side.contains("where")) read.where = coordinates(side.at("where"), table, join_path(path, "where"));
  read.step = side.value("step", Json());
  return read;
}

std::vector<SweepPoint> selected_points(const Json& at, const std::vector<SweepPoint>& grid,
                                        const ResultTable& table, const std::string& path) {
  if (at == "each" || grid.empty()) return grid;
  if (at == "last") return {grid.back()};
  if (!at.is_array())
    throw UserError(path,
                    fmt::format("{}; allowed: \"each\", \"last\" or a list of sweep points", at.dump()));
  std::vector<SweepPoint> selected;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::string here = join_path(path, i);
    if (!at[i].is_object() && table.sweep_paths.size() != 1)
      throw UserError(here, "a bare value needs exactly one swept path; give {\"path\": value}");
    const SweepPoint wanted =
        at[i].is_object() ? coordinates(at[i], table, here) : SweepPoint{{table.sweep_paths.front(), at[i]}};
    const std::vector<SweepPoint> named = points_matching(grid, wanted);
    if (named.empty()) throw UserError(here, fmt::format("no sweep point has {}", point_text(wanted)));
    selected.insert(selected.end(), named.begin(), named.end());
  }
  return selected;
}

/// Turns a trend into the two sides that it compares.
void read_trend(const Json& json, const ResultTable& table, const std::string& path, Claim& claim) {
  claim.left = read_side(json, table, path);
  claim.right = claim.left;
  const std::string direction = json.at("op").get<std::string>();
  if (direction != "decreases" && direction != "increases")
    throw UserError(join_path(path, "op"), unknown_name("trend", direction, {"decreases", "increases"}));
  claim.op = direction == "decreases" ? '<' : '>';
  const std::string along = json.at("along").get<std::string>();
  claim.text = fmt::format("{} {} along {}", claim.left.text(), direction, along);
  if (along == "step") {
    claim.left.step = "end";
    claim.right.step = "start";
    return;
  }
  if (std::find(table.sweep_paths.begin(), table.sweep_paths.end(), along) == table.sweep_paths.end())
    throw UserError(join_path(path, "along"), unknown_name("swept path", along, table.sweep_paths));
  if (table.rows.empty()) return;
  claim.left.where.emplace_back(along, *table.rows.back().coordinate(along));
  claim.right.where.emplace_back(along, *table.rows.front().coordinate(along));
}

}  // namespace

std::string point_text(const SweepPoint& point) {
  std::string text;
  for (const auto& [path, value] : point)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", path, value.dump());
  return text;
}

std::string ClaimSide::text() const {
  if (value) return fmt::format("{:g}", factor * *value);
  std::string text = factor == 1 ? "" : fmt::format("{:g} × ", factor);
  text += fmt::format("{} {}", arm, metric);
  if (!relative_to.empty()) text += fmt::format(" relative to {}", relative_to);
  if (!distance_from.empty()) text += fmt::format(" (RMSE from {} over training)", distance_from);
  const std::string place = point_text(where);
  if (!place.empty()) text += fmt::format(" at {}", place);
  if (step.is_number()) text += fmt::format(" at step {}", step.dump());
  if (step.is_string()) text += fmt::format(" at the {}", step.get<std::string>());
  return text;
}

Claim read_claim(const Json& json, const ResultTable& table, const std::string& path) {
  Claim claim;
  if (json.contains("along")) {
    read_trend(json, table, path, claim);
  } else {
    claim.left = read_side(json.at("left"), table, join_path(path, "left"));
    claim.right = read_side(json.at("right"), table, join_path(path, "right"));
    const std::string op = json.at("op").get<std::string>();
    if (op != "<" && op != ">" && op != "~")
      throw UserError(join_path(path, "op"), unknown_name("operator", op, {"<", ">", "~"}));
    claim.op = op[0];
    if (claim.op == '~') {
      if (!json.contains("tolerance"))
        throw UserError(join_path(path, "tolerance"), "missing; op ~ needs a relative tolerance above 0");
      claim.tolerance = json.at("tolerance").get<double>();
    }
    claim.text = fmt::format("{} {} {}", claim.left.text(), op, claim.right.text());
    if (claim.op == '~') claim.text += fmt::format(" within {:g} %", 100 * claim.tolerance);
  }
  if (claim.left.value && claim.right.value)
    throw UserError(path, "both sides are numbers; at least one must name an arm and a metric");

  const std::vector<SweepPoint> grid = grid_points(table);
  for (const SweepPoint& point :
       selected_points(json.value("at", Json("each")), grid, table, join_path(path, "at"))) {
    SweepPoint left = side_point(grid, point, claim.left.where, join_path(path, "left"));
    SweepPoint right = side_point(grid, point, claim.right.where, join_path(path, "right"));
    // A number stands at the point of the side it is compared with.
    if (claim.left.value) left = right;
    if (claim.right.value) right = left;
    const std::pair<SweepPoint, SweepPoint> pair(left, right);
    if (std::find(claim.points.begin(), claim.points.end(), pair) == claim.points.end())
      claim.points.push_back(pair);
  }
  return claim;
}

}  // namespace moelab
