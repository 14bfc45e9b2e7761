#pragma once

#include <optional>
#include <string>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/result_table.h"

namespace moelab {

/// An entry of the group of metrics "convergence", of which there may be several.
struct ConvergenceMetricOptions {
  std::string metric = "test_nmse_soft";  ///< any other metric that the scenario records
  double target = 0.1;
  enum class Direction { below, above };
  Direction direction = Direction::below;
  std::optional<std::string> name;  ///< tells several apart
  void bind(Fields& fields);
};

/// For each entry of `groups` the first recorded step at which its metric is at most (`above`: at least) its
/// target, as "steps_to_target", and "steps_to_target_censored" 0. Where none is, the number is
/// right-censored at the last step: "steps_to_target_censored" 1 alone. An entry's name stands behind both,
/// as in "steps_to_target.fast". A value that is not finite has reached nothing; a metric that no step has a
/// finite value of, such as one of routing in a dense model, sets neither.
void set_steps_to_target(const std::vector<MetricOptions>& groups, const std::vector<TraceEntry>& trace,
                         MetricValues& values);

}  // namespace moelab
