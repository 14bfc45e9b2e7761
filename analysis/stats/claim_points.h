#pragma once

/// The sides of a comparison or a trend, and the pairs of sweep points at which it compares them.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"

namespace moelab {

/// Where the two sides are taken.
struct PointPair {
  SweepPoint left, right;
  std::optional<ClaimStep> left_step = std::nullopt, right_step = std::nullopt;  ///< unset: the end
  bool is_step = false;  ///< of a monotone trend, one value against the one before

  bool operator==(const PointPair&) const = default;
};

struct PointedClaim {
  ClaimSide left, right;
  char op = '<';         ///< '<', '>' or '~'
  double tolerance = 0;  ///< of '~'
  std::string text;
  Matched matched = Matched::steps;
  std::vector<PointPair> points;  ///< each once; the steps of a monotone trend before its ends
};

/// Finds the points of a claim in the table of `rows`. Throws InvalidOption below `path`
/// ("claims[0].left.arm") for arms, swept paths in expressions and sweep points that do not exist.
PointedClaim find_points(const Comparison& claim, const RowIndex& rows, const std::string& path);
PointedClaim find_points(const Trend& claim, const RowIndex& rows, const std::string& path);

// The values of a claim's two sides, seed by seed.

/// The paired observations of a claim at one of its points, factors not applied.
struct ClaimPairs {
  std::vector<Interval> left, right;  ///< see observed() in observation.h
  std::string problem;                ///< why a pair is incomplete; empty when all are complete

  /// No value is censored.
  bool exact() const;
};

/// `is_ragged`: arms and points may have different numbers of seeds, and those that one side has not are none
/// of its pairs.
ClaimPairs collect_pairs(const PointedClaim& claim, const PointPair& at, const RowIndex& rows,
                         bool is_ragged = false);

/// Whether the side is positive by definition: a constant, or a metric of which `is_positive` holds, or an
/// expression built by ×, ÷ and + from such and from positive swept values. The distance of two curves is
/// not, since that of equal ones is 0.
bool is_positive_side(const ClaimSide& side, const RowIndex& rows,
                          const std::function<bool(const std::string&)>& is_positive);

/// Whether the side is a loss relative to the trivial one: an nmse, which 1 is no better than the mean of.
bool is_relative_to_trivial(const ClaimSide& side);

}  // namespace moelab
