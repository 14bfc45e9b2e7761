#pragma once

/// The sides of a comparison or a trend, and the pairs of sweep points at which a claim compares them.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "analysis/stats/expression.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"

namespace moelab {

/// The sweep points and steps of the two sides.
struct PointPair {
  SweepPoint left, right;
  std::optional<ClaimStep> left_step = std::nullopt,
                           right_step = std::nullopt;  ///< unset: the end of training
  bool is_step = false;     ///< in a monotone trend: compares a value with the previous one
  bool is_outside = false;  ///< a side's point is outside the claim's regime

  bool operator==(const PointPair&) const = default;
};

struct PointedClaim {
  ClaimSide left, right;
  Interval range;  ///< the open range of l / r − 1 in which the claim holds
  std::string text;
  Matched matched = Matched::steps;
  std::vector<PointPair> points;  ///< distinct; the steps of a monotone trend come before its ends
};

/// The sweep points that a claim covers.
class Regime {
 public:
  /// Throws InvalidOption below `path` for unknown swept paths, missing sweep points and invalid conditions.
  Regime(const std::optional<ClaimRegime>& regime, const RowIndex& rows, const std::string& path);

  bool holds(const SweepPoint& point) const;

 private:
  const RowIndex& rows_;
  std::optional<Condition> condition_;
  std::optional<std::set<std::string>> listed_;  ///< point_key() of each
};

/// Finds the points of a claim in the table of `rows`. A trend compares the ends of its regime; the ends of
/// the whole sweep then follow as a point outside. Throws InvalidOption below `path` ("claims[0].left.arm")
/// for unknown arms, unknown swept paths in expressions, and missing sweep points.
PointedClaim find_points(const Comparison& claim, const Regime& regime, const RowIndex& rows,
                         const std::string& path);
PointedClaim find_points(const Trend& claim, const Regime& regime, const RowIndex& rows,
                         const std::string& path);

// Paired values

/// The paired observations of a claim at one point, one pair per seed. Factors are not applied.
struct ClaimPairs {
  std::vector<Interval> left, right;  ///< see observed() in result_table.h
  std::string problem;                ///< why a pair is incomplete; empty if all pairs are complete
  int lost_left = 0, lost_right = 0;  ///< seeds where only one side diverged, if diverged cells lose
  bool are_untaught = false;          ///< no gradient of the task reaches the routers of both sides

  /// Whether no value is censored.
  bool exact() const;
};

/// Collects the pairs of a claim at a point. With `is_ragged`, arms and points may have different numbers of
/// seeds. Seeds that one side lacks then form no pair.
ClaimPairs collect_pairs(const PointedClaim& claim, const PointPair& at, const RowIndex& rows,
                         bool is_ragged = false, Diverged diverged = Diverged::leaves);

/// Whether the side is positive by definition. Constants, metrics with `is_positive` and positive swept
/// values are positive, and so are their products, quotients and sums. The distance of two curves is not,
/// because equal curves have distance 0.
bool is_positive_side(const ClaimSide& side, const RowIndex& rows,
                      const std::function<bool(const std::string&)>& is_positive);

/// Whether the side is a loss of the task.
bool is_task_loss(const ClaimSide& side);

/// Whether the side is a loss relative to predicting the mean of the labels: an nmse, which is 1 for that
/// predictor.
bool is_relative_to_trivial(const ClaimSide& side);

}  // namespace moelab
