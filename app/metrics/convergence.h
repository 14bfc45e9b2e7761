#pragma once

#include <string>

#include "analysis/stats/result_table.h"
#include "app/metrics/metric_groups.h"

namespace moelab {

/// The group of metrics "convergence".
struct ConvergenceMetricOptions {
  std::string metric = "test_nmse_soft";  ///< of the group "task"
  double target = 0.1;
  void bind(Fields& fields);
};

/// The first recorded step at which the metric is at most its target, as "steps_to_target"; nothing where
/// there is none, or `groups` do not ask. A value that is not finite has reached nothing.
void set_steps_to_target(const std::vector<MetricOptions>& groups, const std::vector<TraceEntry>& trace,
                         MetricValues& values);

}  // namespace moelab
