#pragma once

/// The sides of a comparison or a trend, and the pairs of sweep points at which it compares them.

#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/claim.h"
#include "analysis/stats/row_index.h"

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

}  // namespace moelab
