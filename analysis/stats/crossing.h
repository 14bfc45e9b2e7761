#pragma once

/// The zero crossing of a curve of means over seeds: the search by bisection, and the crossing with its
/// interval.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/intervals.h"
#include "sim/base/options.h"

namespace moelab {

/// "crossing" of a swept path: searches the values where a metric's mean crosses a level or another arm's
/// mean.
struct CrossingFields {
  std::string metric;  ///< a metric or an expression
  std::optional<double> level;
  std::string against;  ///< the arm whose metric replaces the level; empty with a level
  std::string arm;  ///< the arm whose curve places the points of all arms; empty: each arm uses its own curve
  double low = 0, high = 0;
  bool is_log = false;       ///< bisection and lines use the logarithm of the value
  double resolution = 0.04;  ///< smallest width of a bracket that is halved, as a share of the range
  void bind(Fields& fields);
};

/// A search `sweep: {"path": {"crossing": {…}}}`, where a metric's mean crosses a level or another arm's
/// mean. It bisects [low, high] for each arm and each point of the other swept paths.
struct CrossingRule : CrossingFields {
  std::string path;       ///< the searched path
  bool is_whole = false;  ///< the path takes only integers

  /// Whether the search follows a curve of this arm.
  bool searches(const std::string& searched) const;
  /// The coordinate in which lines are straight: the value or its logarithm.
  double scaled(double value) const;
  double unscaled(double place) const;
  /// The value that halves a bracket. It has as few digits as keep it within 1/64 of the bracket from the
  /// middle. Returns no value if the bracket has the requested width, or contains no integer for an integer
  /// path.
  std::optional<double> middle(double low, double high) const;
  /// The maximum number of values that bisection can still place in a bracket.
  int most_within(double low, double high) const;
  /// Whether the value is an end of the range. Every run of the search has cells there.
  bool is_end(double number) const { return number <= low || number >= high; }
};

/// One point of a curve: x, on the scale on which lines are straight, and the values of the seeds.
struct CurvePoint {
  double x = 0;
  std::vector<std::optional<double>> seeds;  ///< by seed index; none if a cell diverged, failed or is missing
  bool is_complete = true;                   ///< every cell is recorded
};

/// The mean over the seeds with a value, or none unless these are more than half of all seeds.
std::optional<double> curve_mean(const CurvePoint& point);

enum class CrossingState {
  crosses,   ///< found with the requested accuracy
  above,     ///< both ends of the range are at least zero
  below,     ///< both ends are below zero
  no_value,  ///< at least half of the seeds have no value at a point that the search needs
  open,      ///< cells that the search needs are not recorded
};

/// The progress of a bisection. Each x is the place of a point in the range, in the caller's order.
struct CrossingProgress {
  CrossingState state = CrossingState::open;
  double low = 0, high = 0;     ///< the bracket, where the means have different signs, or the range
  std::vector<double> visited;  ///< x of every needed point, in the order of the search
};

/// Bisects [low, high]: first both ends, then `middle(low, high)` of each bracket until it gives none. A mean
/// of zero counts as above. `point_at` gives the point at x, or null if it is not planned yet. Then the
/// search is open and waits for the last of `visited` (or for both ends).
CrossingProgress bisect(double low, double high,
                        const std::function<std::optional<double>(double low, double high)>& middle,
                        const std::function<const CurvePoint*(double x)>& point_at);

/// The zero of the straight line between the means at two neighbouring points, with its 95 % interval.
struct CrossingEstimate {
  double x = 0;
  std::optional<double> low, high;  ///< none if the interval reaches the end of the curve
};

/// The crossing between curve[left] and curve[left + 1], whose means differ in sign. x must ascend in
/// `curve`.
///
/// The interval inverts a t-test. It reaches from the least to the largest x of the curve at which a
/// two-sided test of level 5 % does not reject a mean of zero (Fieller 1954). The values of the seeds at x
/// lie on straight lines between the points. A seed whose curve does not cross counts like the others; a mean
/// over the seeds' crossings would lose it. Between two points only seeds with values at both count, and at
/// least two are needed.
///
/// Where every point has its own noise, the noise also decides where a search places its points, and the
/// accepted x form several pieces. The interval is therefore their hull. tests/calibration measures its
/// coverage for shared and for independent noise.
CrossingEstimate estimate_crossing(const std::vector<CurvePoint>& curve, std::size_t left);

/// The measured coverage of 95 % intervals in %, least and largest over numbers of seeds.
struct CrossingCoverage {
  Interval shared;       ///< of crossings, where a seed has the same noise at each point
  Interval independent;  ///< of crossings, where each point draws its own noise
  Interval exponent;     ///< of the exponents of a power law of crossings
};
/// The values in tests/calibration/table.json; a test compares them.
inline constexpr CrossingCoverage kCrossingCoverage = {{94.0, 95.33}, {84.6, 96.0}, {89.0, 92.0}};

/// How often neighbouring means differ in sign. Points without a mean are skipped.
int sign_changes(const std::vector<CurvePoint>& curve);

}  // namespace moelab
