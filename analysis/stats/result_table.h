#pragma once

/// The tidy table of results, with one row per cell. Claims and figures are pure functions of it.

#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/stats/intervals.h"
#include "sim/base/options.h"

namespace moelab {

// Values of swept paths

/// The value of a swept path.
using SweepValue = AnyValue;

/// Coordinates in a sweep: swept path → value, in sweep order.
using SweepPoint = NamedValues<SweepValue>;

/// The value of a path at a point, or null.
const SweepValue* coordinate_of(const SweepPoint& point, const std::string& path);

/// Whether `point` has every coordinate of `wanted`.
bool has_coordinates(const SweepPoint& point, const SweepPoint& wanted);

/// "data.train_samples = 640, model.experts = 32"; empty for no coordinates.
std::string point_text(const SweepPoint& point);

/// The text of a value; names have no quotes.
std::string value_text(const SweepValue& value);

/// Metrics by name, without those that do not apply. A flat map, because 10^5 cells have 10^5 maps.
using MetricValues = boost::container::flat_map<std::string, double>;

/// The metrics of one cell at one recorded step.
struct TraceEntry {
  std::int64_t step = 0;
  MetricValues metrics;
};

struct ResultRow {
  std::string cell;  ///< content hash
  std::string arm;   ///< name of the arm
  int seed = 0;      ///< seed index
  SweepPoint point;
  std::string state;              ///< done, diverged, failed or missing
  MetricValues metrics;           ///< at the last step
  std::vector<TraceEntry> trace;  ///< at every recorded step, the last included
  bool is_copy = false;           ///< repeats the row before it at another value of an unswept path
  bool is_untaught = false;       ///< the router learns, but no gradient of the task reaches its scores

  /// The value of a swept path. Null if the path is not swept.
  const SweepValue* coordinate(const std::string& path) const { return coordinate_of(point, path); }
  /// Whether the row has every coordinate of `where`.
  bool is_at(const SweepPoint& where) const { return has_coordinates(point, where); }
};

struct ResultTable {
  std::vector<std::string> arms;         ///< in the scenario's order
  std::vector<std::string> sweep_paths;  ///< in the scenario's order
  /// Numbers at paths that are not swept but named in expressions. All cells share them.
  std::map<std::string, double> fixed = {};
  std::vector<ResultRow> rows;  ///< arm-major, then sweep point, then seed
  /// The numeric swept path whose values a search has placed. Each arm and point of the other paths has its
  /// own values, and all have the ends. Empty for a grid of arms and points.
  std::string searched_path = {};
  /// Whether open claims decided the number of seeds. Arms and points then have different numbers of seeds,
  /// and only confidence sequences (intervals.h) are valid.
  bool is_decided = false;
  /// The swept paths that an arm does not sweep. Its rows stand at every value of them (repeat_unswept).
  std::map<std::string, std::vector<std::string>> unswept = {};

  /// Metrics of imported arms that their users declare to be above zero.
  std::set<std::string> own_positive = {};

  /// Whether the arm sweeps the path.
  bool sweeps(const std::string& arm, const std::string& path) const;
  /// The number of rows that are no copies.
  std::size_t cell_count() const;
};

/// Repeats the rows of an arm that lacks coordinates at every value of these paths, in the order of the grid.
/// Sets ResultTable::unswept.
void repeat_unswept(ResultTable& table);

// Values that may be right-censored: steps to a target that was not reached exceed the steps run

/// The metric that is 1 if `metric` is right-censored: "steps_to_target_censored.fast" for
/// "steps_to_target.fast".
std::string censored_name(const std::string& metric);

/// The metric in `metrics` of the row: [value, value], or (t, ∞) with t the last recorded step if it is
/// right-censored, or none without a finite value.
std::optional<Interval> observed(const ResultRow& row, const MetricValues& metrics,
                                 const std::string& metric);

// Rows by arm, sweep point and seed

/// A text that is equal exactly for equal points.
std::string point_key(const SweepPoint& point);

/// Finds rows in constant time. Claims look up as many rows as the table has.
class RowIndex {
 public:
  /// `table` must outlive the object.
  explicit RowIndex(const ResultTable& table);
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  const ResultTable& table() const { return table_; }
  /// The distinct points in the order of the table. Points along a searched path are together, ascending.
  const std::vector<SweepPoint>& points() const { return points_; }
  /// The points with every coordinate of `wanted`, in the same order. All for no coordinates.
  std::vector<const SweepPoint*> points_at(const SweepPoint& wanted) const;
  /// The coordinates of other paths that `path` determines (the other paths of a zip), at this `value` of the
  /// path.
  SweepPoint followers(const std::string& path, const SweepValue& value) const;
  bool has_point(const SweepPoint& point) const { return known_points_.contains(point_key(point)); }
  /// The rows of an arm at a point by ascending seeds. For equal seeds the first row counts.
  const std::vector<std::pair<int, const ResultRow*>>& rows(const std::string& arm,
                                                            const SweepPoint& point) const;
  /// The distinct values of a swept path in the order of the table, ascending for a searched path. None for a
  /// path that is not swept.
  const std::vector<SweepValue>& values(const std::string& path) const;
  /// The seeds of an arm's rows, ascending. None for an unknown arm.
  const std::vector<int>& seeds(const std::string& arm) const;

 private:
  struct SweptPath {
    std::vector<SweepValue> values;
    std::unordered_map<std::string, std::vector<const SweepPoint*>> points;  ///< by the canonical value
  };

  const ResultTable& table_;
  std::vector<SweepPoint> points_;
  std::unordered_set<std::string> known_points_;
  std::unordered_map<std::string, std::vector<std::pair<int, const ResultRow*>>> rows_;  ///< by arm and point
  std::unordered_map<std::string, std::vector<int>> seeds_;                              ///< by arm
  std::unordered_map<std::string, SweptPath> paths_;
};

// Distance between two runs' curves of a metric

/// √((1/T) Σ_t (m_t − m'_t)²) over the T recorded steps, including the start (Guo et al. 2025, Eq. 43). None
/// if the runs recorded different steps or none, or one lacks the metric at a step.
std::optional<double> curve_rmse(const std::vector<TraceEntry>& left, const std::vector<TraceEntry>& right,
                                 const std::string& metric);

}  // namespace moelab
