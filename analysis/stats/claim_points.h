#pragma once

/// The sides of a comparison or a trend, and the pairs of sweep points at which it compares them.

#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/claim.h"
#include "analysis/stats/row_index.h"

namespace moelab {

struct PointedClaim {
  ClaimSide left, right;
  char op = '<';         ///< '<', '>' or '~'
  double tolerance = 0;  ///< of '~'
  std::string text;
  std::vector<std::pair<SweepPoint, SweepPoint>> points;  ///< (left, right), each pair once
};

/// Finds the points of a claim in the table of `rows`. Throws InvalidOption below `path`
/// ("claims[0].left.arm") for arms and sweep points that do not exist.
PointedClaim find_points(const Comparison& claim, const RowIndex& rows, const std::string& path);
PointedClaim find_points(const Trend& claim, const RowIndex& rows, const std::string& path);

}  // namespace moelab
