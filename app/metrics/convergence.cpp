#include "app/metrics/convergence.h"

#include <cmath>

namespace moelab {
void ConvergenceMetricOptions::bind(Fields& fields) {
  fields.add("metric", metric, "a metric that the scenario records");
  fields.add("target", target, any_number(), "the value to reach");
  fields.add("direction", direction, {"below", "above"}, "the side of the target to be reached");
  fields.add("name", name, "ends the names of the metrics, steps_to_target.<name>, of one entry of several");
}

void set_steps_to_target(const std::vector<MetricOptions>& groups, const std::vector<TraceEntry>& trace,
                         MetricValues& values) {
  for (const MetricOptions& group : groups) {
    const ConvergenceMetricOptions* const options = group.as<ConvergenceMetricOptions>();
    if (!options) continue;
    std::optional<std::int64_t> first;
    bool is_measured = false;
    for (const TraceEntry& entry : trace) {
      const auto metric = entry.metrics.find(options->metric);
      if (metric == entry.metrics.end() || !std::isfinite(metric->second)) continue;
      is_measured = true;
      const bool has_reached = options->direction == ConvergenceMetricOptions::Direction::below
                                   ? metric->second <= options->target
                                   : metric->second >= options->target;
      if (has_reached && !first) first = entry.step;
    }
    if (!is_measured) continue;
    const std::string ending = options->name ? "." + *options->name : "";
    if (first) values["steps_to_target" + ending] = static_cast<double>(*first);
    values["steps_to_target_censored" + ending] = first ? 0 : 1;
  }
}

MetricGroup convergence_metrics() {
  MetricGroup group{
      {"convergence", "how soon a metric reaches a target; uses what that metric uses",
       ConvergenceMetricOptions{}, ConvergenceMetricOptions{}},
      {{"steps_to_target", true,
        "first recorded step with the metric at its target or beyond; empty if none, then it is "
        "right-censored at the last step",
        "steps to the target", "steps to target"},
       {"steps_to_target_censored", false, "1 where no recorded step reached the target, else 0",
        "share that did not reach the target", "censored"}}};
  group.by_default = false;
  group.needs = {&needs::model};
  group.of_entries = true;
  return group;
}

}  // namespace moelab
