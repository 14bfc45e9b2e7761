#include "analysis/stats/claim_points.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/stats/expression.h"
#include "analysis/stats/result_table.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

const ResultRow* find_row(const RowIndex& rows, const std::string& arm, const SweepPoint& point, int seed) {
  const auto& of_arm = rows.rows(arm, point);
  const auto found = std::lower_bound(of_arm.begin(), of_arm.end(), seed,
                                      [](const auto& row, int wanted) { return row.first < wanted; });
  return found != of_arm.end() && found->first == seed ? found->second : nullptr;
}

const MetricValues* metrics_at(const ResultRow& row, const std::optional<ClaimStep>& step) {
  const ClaimStep wanted = step.value_or(ClaimStep{});
  if (wanted.at == ClaimStep::At::end) return &row.metrics;
  if (wanted.at == ClaimStep::At::start) return row.trace.empty() ? nullptr : &row.trace.front().metrics;
  for (const TraceEntry& entry : row.trace)
    if (entry.step == wanted.step) return &entry.metrics;
  return nullptr;
}

std::optional<Interval> number_at(const SweepPoint& point, const ResultTable& table,
                                  const std::string& path) {
  if (const auto fixed = table.fixed.find(path); fixed != table.fixed.end())
    return Interval{fixed->second, fixed->second};
  for (const auto& [name, value] : point)
    if (name == path && value.number()) return Interval{*value.number(), *value.number()};
  return std::nullopt;
}

/// The records of one cell.
using Records = std::vector<TraceEntry>;

std::optional<double> finite_at(const TraceEntry& entry, const std::string& metric) {
  const auto found = entry.metrics.find(metric);
  if (found == entry.metrics.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

/// The smallest value of a metric in the records; last_of() returns the last value.
std::optional<double> least_of(const Records& records, const std::string& metric) {
  std::optional<double> least;
  for (const TraceEntry& entry : records) {
    const std::optional<double> value = finite_at(entry, metric);
    if (value) least = std::min(least.value_or(*value), *value);
  }
  return least;
}
std::optional<double> last_of(const Records& records, const std::string& metric) {
  std::optional<double> last;
  for (const TraceEntry& entry : records) {
    if (const std::optional<double> value = finite_at(entry, metric)) last = value;
  }
  return last;
}

/// The metrics of both cells at the matched records (see Matched); null if there is no match.
std::pair<const MetricValues*, const MetricValues*> matched_records(Matched matched, const ResultRow& left,
                                                                    const ResultRow& right) {
  const std::string metric = matched_metric(matched);
  const bool by_loss = matched == Matched::loss;
  const auto end_of = by_loss ? least_of : last_of;
  const std::optional<double> of_left = end_of(left.trace, metric), of_right = end_of(right.trace, metric);
  if (!of_left || !of_right) return {};
  const double level = by_loss ? std::max(*of_left, *of_right) : std::min(*of_left, *of_right);
  const auto within = [&](const Records& records) -> const MetricValues* {
    const MetricValues* found = nullptr;
    for (const TraceEntry& entry : records) {
      const std::optional<double> value = finite_at(entry, metric);
      if (!value || *value > level || (by_loss && found)) continue;
      found = &entry.metrics;
    }
    return found;
  };
  return {within(left.trace), within(right.trace)};
}

bool is_finite(const Interval& value) {
  return std::isfinite(value.low) && !std::isnan(value.high);
}

/// The observed values of one side of a claim at one of its points.
class SideValues {
 public:
  SideValues(const ClaimSide& side, const SweepPoint& point, const std::optional<ClaimStep>& step,
             const RowIndex& rows)
      : side_(side),
        point_(point),
        step_(step),
        rows_(rows),
        expression_(Expression::parse(side.is_constant() ? side.value : side.metric, "metric")) {}

  /// The value at a seed. `matched` replaces the metrics at the side's step. If there is no value, `problem`
  /// says why.
  std::optional<Interval> at(int seed, std::string& problem, const MetricValues* matched = nullptr) const {
    if (matched) return measured(side_.arm, seed, problem, matched);
    if (side_.is_constant()) return constant(problem);
    if (!side_.distance_from.empty()) return distance(seed, problem);
    const std::optional<Interval> value = measured(side_.arm, seed, problem);
    if (!value || side_.relative_to.empty()) return value;
    const std::optional<Interval> base = measured(side_.relative_to, seed, problem);
    if (!base) return base;
    static const Expression ratio = Expression::parse("value / base", "metric");
    const std::optional<Interval> quotient =
        ratio.evaluate([&](const std::string& name) { return name == "value" ? value : base; });
    if (!quotient) problem = fmt::format("{} seed {} has {} 0", side_.relative_to, seed, side_.metric);
    return quotient;
  }

  /// Whether every arm of the side has a cell with this seed, done or not.
  bool has(int seed) const {
    if (side_.is_constant()) return true;
    for (const std::string* arm : {&side_.arm, &side_.relative_to, &side_.distance_from})
      if (!arm->empty() && !find_row(rows_, *arm, point_, seed)) return false;
    return true;
  }
  /// Whether a cell of the side diverged at this seed.
  bool has_diverged(int seed) const {
    for (const std::string* arm : {&side_.arm, &side_.relative_to, &side_.distance_from}) {
      const ResultRow* const row = arm->empty() ? nullptr : find_row(rows_, *arm, point_, seed);
      if (row && row->state == "diverged") return true;
    }
    return false;
  }
  /// Whether the side's own arm has a router that the task does not teach.
  bool is_untaught() const {
    if (side_.is_constant()) return false;
    const auto& own = rows_.rows(side_.arm, point_);
    return !own.empty() && own.front().second->is_untaught;
  }
  /// The row of the side's own arm if its cell is done. Otherwise null, and `problem` says why.
  const ResultRow* done_row(int seed, std::string& problem) const {
    return find_done(side_.arm, seed, problem);
  }

 private:
  std::optional<Interval> constant(std::string& problem) const {
    const std::optional<Interval> value =
        expression_.evaluate([&](const std::string& path) { return number_at(point_, rows_.table(), path); });
    if (!value) problem = fmt::format("{} has no value", side_.value);
    return value;
  }

  /// The row of an arm if its cell is done.
  const ResultRow* find_done(const std::string& arm, int seed, std::string& problem) const {
    const ResultRow* const row = find_row(rows_, arm, point_, seed);
    if (row && row->state == "done") return row;
    problem = fmt::format("{} seed {} is {}", arm, seed, row ? row->state : "missing");
    return nullptr;
  }

  std::optional<Interval> measured(const std::string& arm, int seed, std::string& problem,
                                   const MetricValues* matched = nullptr) const {
    const ResultRow* const row = find_done(arm, seed, problem);
    if (!row) return std::nullopt;
    const MetricValues* const metrics = matched ? matched : metrics_at(*row, step_);
    std::string lacking = side_.metric;
    const std::optional<Interval> value =
        expression_.evaluate([&](const std::string& name) -> std::optional<Interval> {
          if (row->coordinate(name) || rows_.table().fixed.contains(name))
            return number_at(point_, rows_.table(), name);
          const std::optional<Interval> found = metrics ? observed(*row, *metrics, name) : std::nullopt;
          if (!found) lacking = name;
          return found;
        });
    if (value && is_finite(*value)) return value;
    problem = fmt::format("{} seed {} has no {}{}", arm, seed, lacking, metrics ? "" : " at that step");
    return std::nullopt;
  }

  /// The distance between the curves of two arms.
  std::optional<Interval> distance(int seed, std::string& problem) const {
    const ResultRow* const row = find_done(side_.arm, seed, problem);
    const ResultRow* const other = find_done(side_.distance_from, seed, problem);
    if (!row || !other) return std::nullopt;
    const std::optional<double> distance = curve_rmse(row->trace, other->trace, side_.metric);
    if (distance && std::isfinite(*distance)) return Interval{*distance, *distance};
    problem =
        fmt::format("{} and {} have no common curve of {}", side_.arm, side_.distance_from, side_.metric);
    return std::nullopt;
  }

  const ClaimSide& side_;
  const SweepPoint& point_;
  const std::optional<ClaimStep>& step_;
  const RowIndex& rows_;
  Expression expression_;
};

/// Whether all values of the path are positive numbers.
bool is_positive_path(const std::string& path, const RowIndex& rows) {
  if (const auto fixed = rows.table().fixed.find(path); fixed != rows.table().fixed.end())
    return fixed->second > 0;
  const std::vector<SweepValue>& values = rows.values(path);
  return std::all_of(values.begin(), values.end(),
                     [](const SweepValue& value) { return value.number() && *value.number() > 0; });
}

/// Both sides at a seed. If a value is missing, `problem` says why.
std::optional<std::pair<Interval, Interval>> pair_of(const PointedClaim& claim, int seed,
                                                     const SideValues& left_values,
                                                     const SideValues& right_values, std::string& problem) {
  std::pair<const MetricValues*, const MetricValues*> matched;
  if (claim.matched != Matched::steps) {
    const ResultRow* const left_row = left_values.done_row(seed, problem);
    const ResultRow* const right_row = right_values.done_row(seed, problem);
    if (!left_row || !right_row) return std::nullopt;
    matched = matched_records(claim.matched, *left_row, *right_row);
    if (!matched.first || !matched.second) {
      problem =
          fmt::format("seed {} has no {} at which its sides are equal", seed, matched_metric(claim.matched));
      return std::nullopt;
    }
  }
  const std::optional<Interval> left = left_values.at(seed, problem, matched.first);
  const std::optional<Interval> right = right_values.at(seed, problem, matched.second);
  if (!left || !right) return std::nullopt;
  return std::pair(*left, *right);
}

}  // namespace

bool ClaimPairs::exact() const {
  return std::all_of(left.begin(), left.end(), is_exact) && std::all_of(right.begin(), right.end(), is_exact);
}

ClaimPairs collect_pairs(const PointedClaim& claim, const PointPair& at, const RowIndex& rows, bool is_ragged,
                         Diverged diverged) {
  std::set<int> seeds(rows.seeds(claim.left.arm).begin(), rows.seeds(claim.left.arm).end());
  seeds.insert(rows.seeds(claim.right.arm).begin(), rows.seeds(claim.right.arm).end());
  const SideValues left_values(claim.left, at.left, at.left_step, rows),
      right_values(claim.right, at.right, at.right_step, rows);
  ClaimPairs pairs;
  pairs.are_untaught = is_task_loss(claim.left) && is_task_loss(claim.right) && left_values.is_untaught() &&
                       right_values.is_untaught();
  int incomplete = 0;
  for (const int seed : seeds) {
    if (is_ragged && (!left_values.has(seed) || !right_values.has(seed))) continue;
    if (diverged == Diverged::loses) {
      const bool left_lost = left_values.has_diverged(seed), right_lost = right_values.has_diverged(seed);
      pairs.lost_left += left_lost && !right_lost ? 1 : 0;
      pairs.lost_right += right_lost && !left_lost ? 1 : 0;
      if (left_lost || right_lost) continue;
    }
    std::string problem;
    if (const auto pair = pair_of(claim, seed, left_values, right_values, problem)) {
      pairs.left.push_back(pair->first);
      pairs.right.push_back(pair->second);
    } else if (incomplete++ == 0) {
      pairs.problem = std::move(problem);
    }
  }
  if (incomplete > 1)
    pairs.problem += fmt::format("; {} of {} seeds are incomplete", incomplete,
                                 static_cast<std::size_t>(incomplete) + pairs.left.size());
  return pairs;
}

bool is_positive_side(const ClaimSide& side, const RowIndex& rows,
                      const std::function<bool(const std::string&)>& is_positive) {
  if (side.is_constant()) {
    const Expression value = Expression::parse(side.value, "value");
    // A plain number takes the scale of the other side.
    if (value.names().empty()) return true;
    return value.is_positive([&](const std::string& path) { return is_positive_path(path, rows); });
  }
  if (!side.distance_from.empty()) return false;
  const std::vector<std::string>& swept = rows.table().sweep_paths;
  const auto is_path = [&](const std::string& name) {
    return rows.table().fixed.contains(name) || std::find(swept.begin(), swept.end(), name) != swept.end();
  };
  return Expression::parse(side.metric, "metric").is_positive([&](const std::string& name) {
    return is_path(name) ? is_positive_path(name, rows) : is_positive(name);
  });
}

namespace {

constexpr const char* kStepsToTarget = "steps_to_target";

/// The name of a side's metric without an evaluation's name. Empty for steps to a target, and unless the side
/// is one metric of one arm.
std::string plain_metric(const ClaimSide& side) {
  const bool is_plain = !side.is_constant() && side.relative_to.empty() && side.distance_from.empty();
  if (!is_plain || side.metric.find(' ') != std::string::npos) return "";
  // What follows the dot of "steps_to_target.test_nmse_top1" names an entry of the scenario, not a metric.
  const std::string first = side.metric.substr(0, side.metric.find('.'));
  if (first == kStepsToTarget || first == censored_name(kStepsToTarget)) return "";
  const std::size_t dot = side.metric.rfind('.');
  return dot == std::string::npos ? side.metric : side.metric.substr(dot + 1);
}

}  // namespace

bool is_relative_to_trivial(const ClaimSide& side) {
  const std::string name = plain_metric(side);
  return name.starts_with("test_nmse") || name.starts_with("train_nmse");
}

bool is_task_loss(const ClaimSide& side) {
  const std::string name = plain_metric(side);
  return is_relative_to_trivial(side) || name.starts_with("test_loss") || name.starts_with("train_loss");
}

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

/// Maps the claim's point to the side's point. A `where` that matches a single grid point fixes the side to
/// that point. Paths that are swept together (zip) move with the path that `where` sets.
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

  /// Whether the side's point is the same for all points of the claim.
  bool is_fixed() const { return named_ != nullptr; }

  /// The side's point; unset if a search has not placed it.
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

using ListedPoint = std::variant<SweepPoint, SweepValue>;

std::vector<const SweepPoint*> listed_points(const std::vector<ListedPoint>& listed, const RowIndex& rows,
                                             const std::string& path) {
  const ResultTable& table = rows.table();
  std::vector<const SweepPoint*> points;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", path, i);
    const SweepPoint* const whole = std::get_if<SweepPoint>(&listed[i]);
    if (!whole && table.sweep_paths.size() != 1)
      throw InvalidOption(here, "a bare value needs exactly one swept path; give {\"path\": value}");
    const SweepPoint wanted =
        whole ? *whole : SweepPoint{{table.sweep_paths.front(), std::get<SweepValue>(listed[i])}};
    check_coordinates(wanted, table, here);
    const std::vector<const SweepPoint*> named = rows.points_at(wanted);
    if (named.empty()) throw InvalidOption(here, fmt::format("no sweep point has {}", point_text(wanted)));
    points.insert(points.end(), named.begin(), named.end());
  }
  return points;
}

std::vector<const SweepPoint*> selected_points(const ClaimPlaces& at, const RowIndex& rows,
                                               const std::string& path) {
  const std::vector<const SweepPoint*> all = rows.points_at({});
  if (at.which == ClaimPlaces::Which::each || all.empty()) return all;
  if (at.which == ClaimPlaces::Which::last) return {all.back()};
  return listed_points(at.listed, rows, path);
}

/// Whether the arms of a side have cells at a point. A search places different points for each arm.
bool has_cells(const ClaimSide& side, const SweepPoint& point, const RowIndex& rows) {
  if (side.is_constant() || rows.table().searched_path.empty()) return true;
  for (const std::string& arm : {side.arm, side.relative_to, side.distance_from})
    if (!arm.empty() && rows.rows(arm, point).empty()) return false;
  return true;
}

/// A text that is equal for points at which the side is the same: point_key() without the coordinates that
/// neither its arms sweep nor its expression names.
std::string side_key(const ClaimSide& side, SweepPoint point, const RowIndex& rows) {
  if (rows.table().unswept.empty()) return point_key(point);
  const std::vector<std::string> named =
      Expression::parse(side.is_constant() ? side.value : side.metric, "metric").names();
  std::erase_if(point, [&](const auto& coordinate) {
    const std::string& path = coordinate.first;
    bool is_swept = std::find(named.begin(), named.end(), path) != named.end();
    for (const std::string* arm : {&side.arm, &side.relative_to, &side.distance_from})
      is_swept |= !arm->empty() && rows.table().sweeps(*arm, path);
    return !is_swept;
  });
  return point_key(point);
}

/// Adds the pairs at `points` for which both sides have cells. Points at which both sides have the same cells
/// count once.
void add_pairs(const std::vector<const SweepPoint*>& points, const Regime& regime, const RowIndex& rows,
               const std::string& path, PointedClaim& claim, bool is_step = false) {
  const SidePlace left_place(rows, claim.left.where, path + ".left");
  const SidePlace right_place(rows, claim.right.where, path + ".right");
  std::set<std::pair<std::string, std::string>> known;
  for (const SweepPoint* point : points) {
    const std::optional<SweepPoint> left = left_place.of(*point), right = right_place.of(*point);
    if (!left || !right) continue;
    PointPair pair = {*left, *right, claim.left.step, claim.right.step, is_step};
    // A constant is placed at the point of the side that it is compared with.
    if (claim.left.is_constant()) pair.left = pair.right;
    if (claim.right.is_constant()) pair.right = pair.left;
    pair.is_outside = !regime.holds(pair.left) || !regime.holds(pair.right);
    if (!has_cells(claim.left, pair.left, rows) || !has_cells(claim.right, pair.right, rows)) continue;
    if (known.emplace(side_key(claim.left, pair.left, rows), side_key(claim.right, pair.right, rows)).second)
      claim.points.push_back(std::move(pair));
    if (left_place.is_fixed() && right_place.is_fixed()) break;
  }
}

/// One point per setting of the paths that do not move with `path`. If both sides fix their value along
/// `path`, further points along it repeat the same pair.
std::vector<const SweepPoint*> points_across(const std::string& path, const RowIndex& rows) {
  std::vector<const SweepPoint*> points;
  std::set<std::string> known;
  if (rows.points().empty()) return points;
  // The paths that move together are the same at all points.
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

Regime::Regime(const std::optional<ClaimRegime>& regime, const RowIndex& rows, const std::string& path)
    : rows_(rows) {
  if (!regime || !regime->is_given()) return;
  if (regime->condition.empty()) {
    listed_.emplace();
    for (const SweepPoint* point : listed_points(regime->listed, rows, path))
      listed_->insert(point_key(*point));
    return;
  }
  condition_ = Condition::parse(regime->condition, path);
  for (const std::string& name : condition_->names())
    if (!rows.table().fixed.contains(name)) check_swept(name, rows.table(), path);
  const std::vector<SweepPoint>& points = rows.points();
  // A search has not placed its points yet.
  if (points.empty() || !rows.table().searched_path.empty()) return;
  if (std::none_of(points.begin(), points.end(), [&](const SweepPoint& point) { return holds(point); }))
    throw InvalidOption(path, fmt::format("got '{}', which holds at no sweep point", regime->condition));
}

bool Regime::holds(const SweepPoint& point) const {
  if (listed_) return listed_->contains(point_key(point));
  return !condition_ || condition_->holds([&](const std::string& name) -> std::optional<double> {
    const std::optional<Interval> number = number_at(point, rows_.table(), name);
    return number ? std::optional(number->low) : std::nullopt;
  });
}

PointedClaim find_points(const Comparison& claim, const Regime& regime, const RowIndex& rows,
                         const std::string& path) {
  const ResultTable& table = rows.table();
  check_side(claim.left, table, path + ".left");
  check_side(claim.right, table, path + ".right");
  if (claim.left.is_constant() && claim.right.is_constant())
    throw InvalidOption(path, "both sides are numbers; at least one must name an arm and a metric");
  PointedClaim pointed{claim.left, claim.right, claim.range(), "", claim.matched, {}};
  pointed.text = fmt::format("{} {} {}", claim.left.text(), claim.rule.op, claim.right.text());
  if (claim.rule.has_tolerance) pointed.text += fmt::format(" within {:g} %", 100 * claim.tolerance);
  if (claim.matched == Matched::loss) pointed.text += " at equal training loss";
  if (claim.matched == Matched::flops) pointed.text += " at equal operations";
  add_pairs(selected_points(claim.at, rows, path + ".at"), regime, rows, path, pointed);
  return pointed;
}

PointedClaim find_points(const Trend& claim, const Regime& regime, const RowIndex& rows,
                         const std::string& path) {
  const ResultTable& table = rows.table();
  check_side(claim.side, table, path);
  PointedClaim pointed{claim.side, claim.side, claim.increases ? kAbove : kBelow, "", Matched::steps, {}};
  pointed.text = fmt::format("{} {} along {}", claim.side.text(), claim.increases ? "increases" : "decreases",
                             claim.along);
  const bool is_monotone = claim.shape == TrendShape::monotone;
  if (claim.along == "step") {
    const std::vector<const SweepPoint*> everywhere = rows.points_at({});
    const auto compare = [&](const ClaimStep& left, const ClaimStep& right, bool is_step) {
      pointed.left.step = left;
      pointed.right.step = right;
      add_pairs(everywhere, regime, rows, path, pointed, is_step);
    };
    const std::vector<ClaimStep> steps =
        is_monotone ? recorded_steps(claim.side.arm, table) : std::vector<ClaimStep>();
    // With a single step, the step and the ends are the same pair.
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
    add_pairs(across, regime, rows, path, pointed, is_step);
  };
  std::vector<SweepValue> covered;  // the values along the path at which the regime has a point
  for (const SweepValue& value : values) {
    const std::vector<const SweepPoint*> points = rows.points_at({{claim.along, value}});
    if (std::any_of(points.begin(), points.end(), [&](const auto* point) { return regime.holds(*point); }))
      covered.push_back(value);
  }
  const bool has_steps = is_monotone && covered.size() > 2;
  for (std::size_t i = 1; has_steps && i < covered.size(); ++i) compare(covered[i], covered[i - 1], true);
  if (!covered.empty()) compare(covered.back(), covered.front(), false);
  if (covered.size() < values.size()) compare(values.back(), values.front(), false);
  return pointed;
}

}  // namespace moelab
