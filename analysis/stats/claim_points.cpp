#include "analysis/stats/claim_points.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "sim/base/error.h"

namespace moelab {
namespace {

void check_arm(const std::string& arm, const ResultTable& table, const std::string& path) {
  if (std::find(table.arms.begin(), table.arms.end(), arm) == table.arms.end())
    throw InvalidOption(path, unknown_name("arm", arm, table.arms));
}

void check_swept(const std::string& name, const ResultTable& table, const std::string& path) {
  if (std::find(table.sweep_paths.begin(), table.sweep_paths.end(), name) == table.sweep_paths.end())
    throw InvalidOption(path, unknown_name("swept path", name, table.sweep_paths));
}

void check_coordinates(const SweepPoint& point, const ResultTable& table, const std::string& path) {
  for (const auto& coordinate : point) check_swept(coordinate.first, table, path + "." + coordinate.first);
}

void check_side(const ClaimSide& side, const ResultTable& table, const std::string& path) {
  if (side.value) return;
  check_arm(side.arm, table, path + ".arm");
  check_coordinates(side.where, table, path + ".where");
}

std::vector<SweepPoint> points_matching(const std::vector<SweepPoint>& grid, const SweepPoint& wanted) {
  std::vector<SweepPoint> matching;
  for (const SweepPoint& point : grid)
    if (has_coordinates(point, wanted)) matching.push_back(point);
  return matching;
}

/// Where a side stands when the claim stands at a point. A `where` that names a single grid point on its own
/// names it whatever the rest of the claim's point says: paths swept in step (zip) move together.
class SidePlace {
 public:
  SidePlace(const RowIndex& rows, const SweepPoint& where, std::string path)
      : rows_(rows), where_(where), path_(std::move(path)) {
    if (!where.empty()) named_ = points_matching(rows.points(), where);
  }

  SweepPoint of(const SweepPoint& point) const {
    if (where_.empty()) return point;
    if (named_.size() == 1) return named_.front();
    SweepPoint moved = point;
    for (const auto& [name, value] : where_)
      for (auto& coordinate : moved)
        if (coordinate.first == name) coordinate.second = value;
    if (!rows_.has_point(moved))
      throw InvalidOption(path_ + ".where", fmt::format("no sweep point has {}", point_text(moved)));
    return moved;
  }

 private:
  const RowIndex& rows_;
  const SweepPoint& where_;
  std::string path_;
  std::vector<SweepPoint> named_;
};

std::vector<SweepPoint> selected_points(const ClaimPlaces& at, const RowIndex& rows,
                                        const std::string& path) {
  const std::vector<SweepPoint>& grid = rows.points();
  const ResultTable& table = rows.table();
  if (at.which == ClaimPlaces::Which::each || grid.empty()) return grid;
  if (at.which == ClaimPlaces::Which::last) return {grid.back()};
  std::vector<SweepPoint> selected;
  for (std::size_t i = 0; i < at.listed.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", path, i);
    const SweepPoint* const listed = std::get_if<SweepPoint>(&at.listed[i]);
    if (!listed && table.sweep_paths.size() != 1)
      throw InvalidOption(here, "a bare value needs exactly one swept path; give {\"path\": value}");
    const SweepPoint wanted =
        listed ? *listed : SweepPoint{{table.sweep_paths.front(), std::get<SweepValue>(at.listed[i])}};
    check_coordinates(wanted, table, here);
    const std::vector<SweepPoint> named = points_matching(grid, wanted);
    if (named.empty()) throw InvalidOption(here, fmt::format("no sweep point has {}", point_text(wanted)));
    selected.insert(selected.end(), named.begin(), named.end());
  }
  return selected;
}

void add_points(const ClaimPlaces& at, const RowIndex& rows, const std::string& path, PointedClaim& claim) {
  const SidePlace left_place(rows, claim.left.where, path + ".left");
  const SidePlace right_place(rows, claim.right.where, path + ".right");
  std::set<std::pair<std::string, std::string>> known;
  for (const SweepPoint& point : selected_points(at, rows, path + ".at")) {
    SweepPoint left = left_place.of(point), right = right_place.of(point);
    // A number stands at the point of the side it is compared with.
    if (claim.left.value) left = right;
    if (claim.right.value) right = left;
    if (known.emplace(point_key(left), point_key(right)).second)
      claim.points.emplace_back(std::move(left), std::move(right));
  }
}

}  // namespace

PointedClaim find_points(const Comparison& claim, const RowIndex& rows, const std::string& path) {
  const ResultTable& table = rows.table();
  check_side(claim.left, table, path + ".left");
  check_side(claim.right, table, path + ".right");
  if (claim.left.value && claim.right.value)
    throw InvalidOption(path, "both sides are numbers; at least one must name an arm and a metric");
  PointedClaim pointed{claim.left, claim.right, claim.op, claim.tolerance, "", {}};
  pointed.text = fmt::format("{} {} {}", claim.left.text(), claim.op, claim.right.text());
  if (claim.op == '~') pointed.text += fmt::format(" within {:g} %", 100 * claim.tolerance);
  add_points(claim.at, rows, path, pointed);
  return pointed;
}

PointedClaim find_points(const Trend& claim, const RowIndex& rows, const std::string& path) {
  const ResultTable& table = rows.table();
  check_side(claim.side, table, path);
  PointedClaim pointed{claim.side, claim.side, claim.increases ? '>' : '<', 0, "", {}};
  pointed.text = fmt::format("{} {} along {}", claim.side.text(), claim.increases ? "increases" : "decreases",
                             claim.along);
  if (claim.along == "step") {
    pointed.left.step = ClaimStep{ClaimStep::At::end};
    pointed.right.step = ClaimStep{ClaimStep::At::start};
  } else {
    check_swept(claim.along, table, path + ".along");
    if (!table.rows.empty()) {
      pointed.left.where.emplace_back(claim.along, *table.rows.back().coordinate(claim.along));
      pointed.right.where.emplace_back(claim.along, *table.rows.front().coordinate(claim.along));
    }
  }
  add_points({}, rows, path, pointed);
  return pointed;
}

}  // namespace moelab
