#pragma once

/// Values that may be right-censored: steps to a target that was not reached are more than the steps taken.

#include <optional>
#include <span>
#include <string>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"

namespace moelab {

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

}  // namespace moelab
