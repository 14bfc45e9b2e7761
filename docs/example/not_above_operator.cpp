#include "analysis/stats/claims.h"

namespace moelab {

/// Left is below right, or above it by less than the tolerance: a test for non-inferiority.
ClaimKind not_above_operator() {
  ComparisonRule rule;
  rule.op = "not_above";
  rule.help = "left is not above right by more than a relative tolerance";
  rule.range = [](double tolerance) { return Interval{kBelow.low, tolerance}; };
  rule.has_tolerance = true;
  return comparison_operator(rule);
}

}  // namespace moelab
