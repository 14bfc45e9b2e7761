#include "app/metrics/metric_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/stats/observation.h"

// Adding a group of metrics is a new file that defines <name>_metrics() and a line here.
// clang-format off
#define MOELAB_METRIC_GROUPS(entry) \
  entry(task)                       \
  entry(sparsity)                   \
  entry(router_norms)               \
  entry(gradient)                   \
  entry(load)                       \
  entry(routing)                    \
  entry(fluctuation)                \
  entry(saturation)                 \
  entry(agreement)                  \
  entry(overlap)                    \
  entry(layers)                     \
  entry(levels)                     \
  entry(own_experts)                \
  entry(feature_weights)            \
  entry(layer_loads)                \
  entry(replaced)                   \
  entry(swapped)                    \
  entry(convergence)                \
  entry(auxiliary_losses)           \
  entry(expert_outputs)             \
  entry(voronoi)                    \
  entry(fit)                        \
  entry(likelihood)                 \
  entry(training)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) MetricGroup name##_metrics();
MOELAB_METRIC_GROUPS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<MetricGroup>& groups() {
#define MOELAB_CALL(name) name##_metrics(),
  static std::vector<MetricGroup> table = {MOELAB_METRIC_GROUPS(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

const MetricGroup::Metric* metric_of(const MetricGroup& group, std::string_view name) {
  for (const MetricGroup::Metric& metric : group.metrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

}  // namespace

const std::vector<MetricGroup>& MetricAxis::table() {
  return groups();
}

const std::vector<MetricGroup>& metric_groups() {
  return groups();
}

void check_set_size(int k, const ExperimentOptions& experiment, const std::string& path) {
  const int experts = routed_experts(experiment.model);
  // One expert has no sets to compare: the metric does not apply, whatever k.
  if (k <= experts || experts == 1 || !reads_mixture(experiment.model)) return;
  throw InvalidOption(path + ".k", fmt::format("got {}, needs at most model.experts = {}", k, experts));
}

void check(const MetricOptions& group, const ExperimentOptions& experiment, const std::string& path) {
  if (const auto own = group.entry().check) own(group.options(), experiment, path);
}

std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name) {
  for (const MetricGroup& group : metric_groups()) {
    if (group.name == name) return group.metrics;
  }
  return {};
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) names.push_back(metric.name);
  }
  return names;
}

const MetricGroup* group_of(std::string_view metric) {
  for (const MetricGroup& group : metric_groups()) {
    if (metric_of(group, metric)) return &group;
  }
  return nullptr;
}

const MetricGroup::Metric* find_metric(std::string_view text) {
  const std::string name = MetricKey::parse(text).metric;
  const MetricGroup* const group = group_of(name);
  return group ? metric_of(*group, name) : nullptr;
}

std::string group_of_metric(std::string_view text) {
  const MetricGroup* const group = group_of(MetricKey::parse(text).metric);
  return group ? group->name : "";
}

std::vector<const Need*> needs_of(std::string_view metric) {
  const MetricGroup* const group = group_of(metric);
  if (!group) return {};
  std::vector<const Need*> all = group->needs;
  const std::vector<const Need*>& own = metric_of(*group, metric)->needs;
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

const Need* unmet_need(std::string_view metric, const MetricSubject& subject, int layer) {
  for (const Need* const need : needs_of(metric)) {
    if (!need->is_met(subject, layer)) return need;
  }
  return nullptr;
}

bool has_metric(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), find_metric);
}

bool is_declared_positive(const std::string& name) {
  const MetricGroup::Metric* const metric = find_metric(name);
  return metric != nullptr && metric->positive;
}

bool may_be_censored(const std::string& metric) {
  // An evaluation may have any name: what is found under "held_out_censored" need not be a flag.
  const MetricGroup::Metric* const flag = find_metric(censored_name(metric));
  return flag != nullptr && flag->name.ends_with("_censored");
}

}  // namespace moelab
