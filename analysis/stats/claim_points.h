#pragma once

/// The sides of a comparison or a trend, and the pairs of sweep points at which a claim compares them.

#include <functional>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"

namespace moelab {

/// The sweep points and steps of the two sides.
struct PointPair {
  SweepPoint left, right;
  std::optional<ClaimStep> left_step = std::nullopt,
                           right_step = std::nullopt;  ///< unset: the end of training
  bool is_step = false;  ///< in a monotone trend: compares a value with the previous one

  bool operator==(const PointPair&) const = default;
};

struct PointedClaim {
  ClaimSide left, right;
  char op = '<';         ///< '<', '>' or '~'
  double tolerance = 0;  ///< relative tolerance of '~'
  std::string text;
  Matched matched = Matched::steps;
  std::vector<PointPair> points;  ///< distinct; the steps of a monotone trend come before its ends
};

/// Finds the points of a claim in the table of `rows`.
/// Throws InvalidOption below `path` ("claims[0].left.arm") for unknown arms, unknown swept paths in
/// expressions, and missing sweep points.
PointedClaim find_points(const Comparison& claim, const RowIndex& rows, const std::string& path);
PointedClaim find_points(const Trend& claim, const RowIndex& rows, const std::string& path);

// Paired values

/// The paired observations of a claim at one point, one pair per seed. Factors are not applied.
struct ClaimPairs {
  std::vector<Interval> left, right;  ///< see observed() in observation.h
  std::string problem;                ///< why a pair is incomplete; empty if all pairs are complete

  /// Whether no value is censored.
  bool exact() const;
};

/// Collects the pairs of a claim at a point. With `is_ragged`, arms and points may have different numbers of
/// seeds. Seeds that one side lacks then form no pair.
ClaimPairs collect_pairs(const PointedClaim& claim, const PointPair& at, const RowIndex& rows,
                         bool is_ragged = false);

/// Whether the side is positive by definition. Constants, metrics with `is_positive` and positive swept
/// values are positive, and so are their products, quotients and sums. The distance of two curves is not,
/// because equal curves have distance 0.
bool is_positive_side(const ClaimSide& side, const RowIndex& rows,
                      const std::function<bool(const std::string&)>& is_positive);

/// Whether the side is a loss relative to predicting the mean of the labels: an nmse, which is 1 for that
/// predictor.
bool is_relative_to_trivial(const ClaimSide& side);

}  // namespace moelab
