#pragma once

/// The values of a claim's two sides, seed by seed.

#include <functional>
#include <string>
#include <vector>

#include "analysis/stats/claim_points.h"
#include "analysis/stats/intervals.h"

namespace moelab {

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
bool is_declared_positive(const ClaimSide& side, const RowIndex& rows,
                          const std::function<bool(const std::string&)>& is_positive);

/// Whether the side is a loss relative to the trivial one: an nmse, which 1 is no better than the mean of.
bool is_relative_to_trivial(const ClaimSide& side);

}  // namespace moelab
