#include "analysis/stats/claim_points.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "analysis/stats/expression.h"
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
  if (side.is_constant()) {
    const Expression value = Expression::parse(side.value, path + ".value");
    for (const std::string& name : value.names())
      if (!table.fixed.contains(name)) check_swept(name, table, path + ".value");
    return;
  }
  check_arm(side.arm, table, path + ".arm");
  check_coordinates(side.where, table, path + ".where");
}

/// Where a side stands when the claim stands at a point. A `where` that names a single grid point on its own
/// names it whatever the rest of the claim's point says, and moves with it the paths that follow its own:
/// paths swept in step (zip) move together.
class SidePlace {
 public:
  SidePlace(const RowIndex& rows, const SweepPoint& where, std::string path)
      : rows_(rows), where_(where), path_(std::move(path)) {
    if (where.empty()) return;
    for (const auto& [swept, value] : where)
      for (auto& follower : rows.followers(swept, value))
        if (coordinate_of(where_, follower.first) == nullptr) where_.push_back(std::move(follower));
    const std::vector<const SweepPoint*> named = rows.points_at(where);
    if (named.size() == 1) named_ = named.front();
  }

  /// The side stands there wherever the claim does.
  bool is_fixed() const { return named_ != nullptr; }

  /// None where a search has not placed that point.
  std::optional<SweepPoint> of(const SweepPoint& point) const {
    if (named_) return *named_;
    if (where_.empty()) return point;
    SweepPoint moved = point;
    for (const auto& [name, value] : where_)
      for (auto& coordinate : moved)
        if (coordinate.first == name) coordinate.second = value;
    if (rows_.has_point(moved)) return moved;
    if (rows_.table().searched_path.empty())
      throw InvalidOption(path_ + ".where", fmt::format("no sweep point has {}", point_text(moved)));
    return std::nullopt;
  }

 private:
  const RowIndex& rows_;
  SweepPoint where_;
  std::string path_;
  const SweepPoint* named_ = nullptr;
};

std::vector<const SweepPoint*> selected_points(const ClaimPlaces& at, const RowIndex& rows,
                                               const std::string& path) {
  std::vector<const SweepPoint*> selected = rows.points_at({});
  const ResultTable& table = rows.table();
  if (at.which == ClaimPlaces::Which::each || selected.empty()) return selected;
  if (at.which == ClaimPlaces::Which::last) return {selected.back()};
  selected.clear();
  for (std::size_t i = 0; i < at.listed.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", path, i);
    const SweepPoint* const listed = std::get_if<SweepPoint>(&at.listed[i]);
    if (!listed && table.sweep_paths.size() != 1)
      throw InvalidOption(here, "a bare value needs exactly one swept path; give {\"path\": value}");
    const SweepPoint wanted =
        listed ? *listed : SweepPoint{{table.sweep_paths.front(), std::get<SweepValue>(at.listed[i])}};
    check_coordinates(wanted, table, here);
    const std::vector<const SweepPoint*> named = rows.points_at(wanted);
    if (named.empty()) throw InvalidOption(here, fmt::format("no sweep point has {}", point_text(wanted)));
    selected.insert(selected.end(), named.begin(), named.end());
  }
  return selected;
}

/// Whether the arms of a side have cells at a point; a search places points of its own for each.
bool has_cells(const ClaimSide& side, const SweepPoint& point, const RowIndex& rows) {
  if (side.is_constant() || rows.table().searched_path.empty()) return true;
  for (const std::string& arm : {side.arm, side.relative_to, side.distance_from})
    if (!arm.empty() && rows.rows(arm, point).empty()) return false;
  return true;
}

/// Adds the pairs of the claim where it stands at `points`, as far as both sides have cells there.
void add_pairs(const std::vector<const SweepPoint*>& points, const RowIndex& rows, const std::string& path,
               PointedClaim& claim, bool is_step = false) {
  const SidePlace left_place(rows, claim.left.where, path + ".left");
  const SidePlace right_place(rows, claim.right.where, path + ".right");
  std::set<std::pair<std::string, std::string>> known;
  for (const SweepPoint* point : points) {
    const std::optional<SweepPoint> left = left_place.of(*point), right = right_place.of(*point);
    if (!left || !right) continue;
    PointPair pair = {*left, *right, claim.left.step, claim.right.step, is_step};
    // A number stands at the point of the side it is compared with.
    if (claim.left.is_constant()) pair.left = pair.right;
    if (claim.right.is_constant()) pair.right = pair.left;
    if (!has_cells(claim.left, pair.left, rows) || !has_cells(claim.right, pair.right, rows)) continue;
    if (known.emplace(point_key(pair.left), point_key(pair.right)).second)
      claim.points.push_back(std::move(pair));
    if (left_place.is_fixed() && right_place.is_fixed()) break;
  }
}

/// One point for each setting of the paths that do not follow this one: where both sides say what stands
/// along `path`, the others give no further pair.
std::vector<const SweepPoint*> points_across(const std::string& path, const RowIndex& rows) {
  std::vector<const SweepPoint*> points;
  std::set<std::string> known;
  if (rows.points().empty()) return points;
  // Which paths follow is the same at all points.
  const SweepPoint following = rows.followers(path, *coordinate_of(rows.points().front(), path));
  for (const SweepPoint& point : rows.points()) {
    SweepPoint others = point;
    std::erase_if(others, [&](const auto& coordinate) {
      return coordinate.first == path || coordinate_of(following, coordinate.first);
    });
    if (known.insert(point_key(others)).second) points.push_back(&point);
  }
  return points;
}

/// The recorded steps of the arm's longest trace.
std::vector<ClaimStep> recorded_steps(const std::string& arm, const ResultTable& table) {
  const ResultRow* longest = nullptr;
  for (const ResultRow& row : table.rows) {
    if (row.arm == arm && row.state == "done" && (!longest || row.trace.size() > longest->trace.size()))
      longest = &row;
  }
  std::vector<ClaimStep> steps;
  if (!longest) return steps;
  for (const TraceEntry& entry : longest->trace) steps.push_back({ClaimStep::At::recorded, entry.step});
  return steps;
}

}  // namespace

PointedClaim find_points(const Comparison& claim, const RowIndex& rows, const std::string& path) {
  const ResultTable& table = rows.table();
  check_side(claim.left, table, path + ".left");
  check_side(claim.right, table, path + ".right");
  if (claim.left.is_constant() && claim.right.is_constant())
    throw InvalidOption(path, "both sides are numbers; at least one must name an arm and a metric");
  PointedClaim pointed{claim.left, claim.right, claim.op, claim.tolerance, "", claim.matched, {}};
  pointed.text = fmt::format("{} {} {}", claim.left.text(), claim.op, claim.right.text());
  if (claim.op == '~') pointed.text += fmt::format(" within {:g} %", 100 * claim.tolerance);
  if (claim.matched == Matched::loss) pointed.text += " at equal training loss";
  if (claim.matched == Matched::flops) pointed.text += " at equal operations";
  add_pairs(selected_points(claim.at, rows, path + ".at"), rows, path, pointed);
  return pointed;
}

PointedClaim find_points(const Trend& claim, const RowIndex& rows, const std::string& path) {
  const ResultTable& table = rows.table();
  check_side(claim.side, table, path);
  PointedClaim pointed{claim.side, claim.side, claim.increases ? '>' : '<', 0, "", Matched::steps, {}};
  pointed.text = fmt::format("{} {} along {}", claim.side.text(), claim.increases ? "increases" : "decreases",
                             claim.along);
  const bool is_monotone = claim.shape == TrendShape::monotone;
  if (claim.along == "step") {
    const std::vector<const SweepPoint*> everywhere = rows.points_at({});
    const auto compare = [&](const ClaimStep& left, const ClaimStep& right, bool is_step) {
      pointed.left.step = left;
      pointed.right.step = right;
      add_pairs(everywhere, rows, path, pointed, is_step);
    };
    const std::vector<ClaimStep> steps =
        is_monotone ? recorded_steps(claim.side.arm, table) : std::vector<ClaimStep>();
    // A single step is the ends themselves.
    for (std::size_t i = 1; steps.size() > 2 && i < steps.size(); ++i) compare(steps[i], steps[i - 1], true);
    compare({ClaimStep::At::end}, {ClaimStep::At::start}, false);
    return pointed;
  }
  check_swept(claim.along, table, path + ".along");
  const std::vector<SweepValue>& values = rows.values(claim.along);
  const std::vector<const SweepPoint*> across = points_across(claim.along, rows);
  const auto compare = [&](const SweepValue& left, const SweepValue& right, bool is_step) {
    pointed.left.where = {{claim.along, left}};
    pointed.right.where = {{claim.along, right}};
    add_pairs(across, rows, path, pointed, is_step);
  };
  const bool has_steps = is_monotone && values.size() > 2;
  for (std::size_t i = 1; has_steps && i < values.size(); ++i) compare(values[i], values[i - 1], true);
  if (!values.empty()) compare(values.back(), values.front(), false);
  return pointed;
}

}  // namespace moelab
