#include "app/metrics/convergence.h"

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

/// The metric is one of task.
void check_metric(const AnyOptions& options, const ExperimentOptions& /*experiment*/,
                  const std::string& path) {
  const std::string& metric = options.get<ConvergenceMetricOptions>().metric;
  const std::vector<std::string> names = names_of(metrics_of_group("task"));
  if (std::find(names.begin(), names.end(), metric) != names.end()) return;
  throw InvalidOption(path + ".metric", unknown_name("metric", metric, names));
}

}  // namespace

void ConvergenceMetricOptions::bind(Fields& fields) {
  fields.add("metric", metric, "a metric of task");
  fields.add("target", target, any_number(), "the value to reach from above");
}

void set_steps_to_target(const std::vector<MetricOptions>& groups, const std::vector<TraceEntry>& trace,
                         MetricValues& values) {
  for (const MetricOptions& group : groups) {
    const ConvergenceMetricOptions* const options = group.as<ConvergenceMetricOptions>();
    if (!options) continue;
    for (const TraceEntry& entry : trace) {
      const auto metric = entry.metrics.find(options->metric);
      if (metric == entry.metrics.end() || !std::isfinite(metric->second)) continue;
      if (metric->second > options->target) continue;
      values["steps_to_target"] = static_cast<double>(entry.step);
      return;
    }
  }
}

MetricGroup convergence_metrics() {
  MetricGroup group{
      {"convergence", "how soon a metric reaches a target; uses what that metric uses",
       ConvergenceMetricOptions{}, ConvergenceMetricOptions{}},
      {{"steps_to_target", true, "first recorded step with the metric at most the target; empty if none"}}};
  group.by_default = false;
  group.check = check_metric;
  return group;
}

}  // namespace moelab
