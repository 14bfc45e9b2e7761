#pragma once

/// The tidy table of results: one row per cell. Claims and figures are pure functions of it.

#include <boost/container/flat_map.hpp>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/stats/intervals.h"

namespace moelab {

// Values of swept paths.

/// A value as a scenario writes it: a number, a name, or whatever else a field may be set to.
class SweepValue {
 public:
  /// `text` as it was written; `canonical` is a text that equal values share (1 and 1.0); `number` where the
  /// value is one.
  SweepValue(std::string text, std::string canonical, std::optional<double> number)
      : text_(std::move(text)), canonical_(std::move(canonical)), number_(number) {}
  template <class Number>
  requires(std::integral<Number> || std::floating_point<Number>) SweepValue(Number number)
      : SweepValue(of_number(static_cast<double>(number))) {}
  SweepValue(const std::string& name) : SweepValue(of_name(name)) {}
  SweepValue(const char* name) : SweepValue(std::string(name)) {}

  const std::string& text() const { return text_; }
  const std::string& canonical() const { return canonical_; }
  const std::optional<double>& number() const { return number_; }
  bool operator==(const SweepValue& other) const { return canonical_ == other.canonical_; }

 private:
  static SweepValue of_number(double number);
  static SweepValue of_name(const std::string& name);

  std::string text_, canonical_;
  std::optional<double> number_;
};

/// Coordinates in a sweep: swept path → value, in sweep order.
using SweepPoint = std::vector<std::pair<std::string, SweepValue>>;

/// The value of a path at a point; null where it has none.
const SweepValue* coordinate_of(const SweepPoint& point, const std::string& path);

/// Whether `point` has every coordinate of `wanted`.
bool has_coordinates(const SweepPoint& point, const SweepPoint& wanted);

/// "data.train_samples = 640, model.experts = 32"; empty for no coordinates.
std::string point_text(const SweepPoint& point);

/// Metrics by name; absent where a metric does not apply. Flat, since 10^5 cells have 10^5 of them.
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

  /// The value of a swept path; null where the path is not swept.
  const SweepValue* coordinate(const std::string& path) const { return coordinate_of(point, path); }
  /// Whether the row has every coordinate of `where`.
  bool is_at(const SweepPoint& where) const { return has_coordinates(point, where); }
};

struct ResultTable {
  std::vector<std::string> arms;         ///< in the scenario's order
  std::vector<std::string> sweep_paths;  ///< in the scenario's order
  /// Numbers that all cells have at paths which are not swept, as far as expressions name them.
  std::map<std::string, double> fixed = {};
  std::vector<ResultRow> rows;  ///< arm-major, then sweep point, then seed
  /// The swept path, of numbers, whose values a search has placed: other ones at each arm and point of the
  /// other paths, its ends at all. Empty where arms and points form a grid.
  std::string searched_path = {};
  /// Seeds were added while claims were open: arms and points have as many as these asked for, and only
  /// confidence sequences (sequences.h) hold at the number that it came to.
  bool is_decided = false;
};

// Values that may be right-censored: steps to a target that was not reached are more than the steps taken.

/// The metric that is 1 where `metric` is right-censored: "steps_to_target_censored.fast" beside
/// "steps_to_target.fast".
std::string censored_name(const std::string& metric);

/// What `metrics` of the row tell of a metric: [value, value]; (t, ∞) with t the last recorded step where it
/// is right-censored; none where it has no finite value.
std::optional<Interval> observed(const ResultRow& row, const MetricValues& metrics,
                                 const std::string& metric);

inline bool is_exact(const Interval& observation) {
  return observation.low == observation.high;
}

/// How pairs of observations compare. Two values that are both not known are a tie.
struct SignCounts {
  int below = 0, above = 0;  ///< pairs of which is known that their left side is below, above the right one
  int ties = 0, undecided = 0;

  void add(const Interval& left, const Interval& right);
};

/// The median of observations, of which at least one is needed.
struct Median {
  double value = 0;
  bool is_open = false;  ///< the median is above `value`, by how much is not known
  int censored = 0;      ///< observations that are right-censored
  int count = 0;
};

/// The median of the lower ends; it is the median where that of the upper ends is the same.
Median median_of(std::span<const Interval> observations);

// Rows of a table found by arm, sweep point and seed.

/// A text that equal points share, and no others.
std::string point_key(const SweepPoint& point);

/// Claims ask for as many rows as the table has: each is found in the same time, however many there are.
class RowIndex {
 public:
  /// `table` outlives the object.
  explicit RowIndex(const ResultTable& table);
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;

  const ResultTable& table() const { return table_; }
  /// The distinct points, in the order of the table; those along a searched path together, ascending.
  const std::vector<SweepPoint>& points() const { return points_; }
  /// Those that have every coordinate of `wanted`, in that order; all for no coordinates.
  std::vector<const SweepPoint*> points_at(const SweepPoint& wanted) const;
  /// Those of other paths that move with a path: at all points they have one value for each of its values, as
  /// the paths of a zip whose values differ. With `value` of the path, those that go with it.
  SweepPoint followers(const std::string& path, const SweepValue& value) const;
  bool has_point(const SweepPoint& point) const { return known_points_.contains(point_key(point)); }
  /// The rows of an arm at a point by their seeds, ascending; of equal seeds the first row counts.
  const std::vector<std::pair<int, const ResultRow*>>& rows(const std::string& arm,
                                                            const SweepPoint& point) const;
  /// The distinct values of a swept path, in the order of the table, of a searched path ascending; none for a
  /// path that is not swept.
  const std::vector<SweepValue>& values(const std::string& path) const;
  /// The seeds of an arm's rows, ascending; none for an arm that there is not.
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

// How far two runs' curves of a metric over training are apart.

/// √((1/T) Σ_t (m_t − m'_t)²) over the T recorded steps (Guo et al. 2025, Eq. 43), the start included. None
/// where the runs recorded different steps or none, or one lacks the metric at a step.
std::optional<double> curve_rmse(const std::vector<TraceEntry>& left, const std::vector<TraceEntry>& right,
                                 const std::string& metric);

}  // namespace moelab
