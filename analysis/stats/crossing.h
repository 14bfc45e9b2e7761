#pragma once

/// Where a curve of means over seeds crosses zero: the search by bisection, and the crossing with its
/// interval.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/stats/intervals.h"

namespace moelab {

/// One point of a curve: x on the scale on which lines are straight, and what the seeds say there.
struct CurvePoint {
  double x = 0;
  std::vector<std::optional<double>>
      seeds;                ///< by seed index; none where a cell diverged, failed, is missing
  bool is_complete = true;  ///< every cell is recorded
};

/// The mean over the seeds that have a value, if those are more than half of all; else none.
std::optional<double> curve_mean(const CurvePoint& point);

enum class CrossingState {
  crosses,   ///< found, as near as was asked for
  above,     ///< both ends of the range lie above zero, or on it
  below,     ///< both ends lie below
  no_value,  ///< at a point that the search needs half of the seeds or more have no value
  open,      ///< cells of a point that the search needs are not recorded
};

/// How far the bisection of a range is. Each x is the place of a point in the range, by its caller's order.
struct CrossingProgress {
  CrossingState state = CrossingState::open;
  double low = 0, high = 0;     ///< the bracket: the mean has different signs there, or the range
  std::vector<double> visited;  ///< x of every point that was needed, in the order of the search
};

/// Bisects [low, high]: the ends first, then `middle(low, high)` of each bracket until that gives none. A
/// mean of zero counts as above. `point_at` gives the point at an x, null where it is not planned yet; the
/// search then is open, and the last of `visited` is what it waits for. (Of the ends both are asked for at
/// once.)
CrossingProgress bisect(double low, double high,
                        const std::function<std::optional<double>(double low, double high)>& middle,
                        const std::function<const CurvePoint*(double x)>& point_at);

/// Where the straight line between the means at two neighbouring points crosses zero, and the 95 % interval.
struct CrossingEstimate {
  double x = 0;
  std::optional<double> low, high;  ///< none where the interval reaches the end of the curve
};

/// The crossing between curve[left] and curve[left + 1], whose means differ in sign; x ascends in `curve`.
///
/// The interval inverts a t-test: it holds each x around the crossing at which the seeds' own values, on
/// straight lines between the points, have a mean that a two-sided test of level 5 % does not tell from zero.
/// At the true crossing that test errs in 5 % of runs whatever the curve's slope (Fieller 1954), so the
/// interval covers it in 95 % but for what the lines between the points miss; and a seed whose own curve does
/// not cross counts as much as the others, where a mean over seeds of crossings would lose it. The interval
/// ends only where the test tells the curve from zero: an end that reaches that of the curve is none. Between
/// two points the seeds that have values at both count; fewer than two tell nothing.
CrossingEstimate estimate_crossing(const std::vector<CurvePoint>& curve, std::size_t left);

/// How often neighbouring means differ in sign; points without a mean are passed over.
int sign_changes(const std::vector<CurvePoint>& curve);

}  // namespace moelab
