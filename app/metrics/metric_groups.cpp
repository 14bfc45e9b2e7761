#include "app/metrics/metric_groups.h"

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
  entry(overlap)                    \
  entry(layers)                     \
  entry(layer_loads)                \
  entry(convergence)                \
  entry(auxiliary_losses)           \
  entry(expert_outputs)             \
  entry(voronoi)                    \
  entry(fit)
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

/// Without the ending of an entry, the prefix of an evaluation and the ending of a layer.
std::string_view bare_name(std::string_view name) {
  if (const std::string_view entry = entry_name(name); !entry.empty())
    return name.substr(0, name.size() - entry.size() - 1);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) name = name.substr(dot + 1);
  const std::string_view number = layer_number(name);
  return number.empty() ? name : name.substr(0, name.rfind('_'));
}

/// The group that holds a metric; null where there is none.
const MetricGroup* find_group(std::string_view metric_name) {
  const std::string_view bare = bare_name(metric_name);
  for (const MetricGroup& group : groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (metric.name == bare) return &group;
    }
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

void add_metric_group(MetricGroup group) {
  groups().push_back(std::move(group));
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

std::string_view layer_number(std::string_view name) {
  constexpr std::string_view kLayer = "_layer";
  const std::size_t layer = name.rfind(kLayer);
  if (layer == std::string_view::npos) return {};
  const std::string_view number = name.substr(layer + kLayer.size());
  return number.find_first_not_of("0123456789") == std::string_view::npos ? number : std::string_view();
}

std::string_view entry_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return {};
  for (const MetricGroup& group : metric_groups()) {
    if (!group.of_entries) continue;
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (metric.name == name.substr(0, dot)) return name.substr(dot + 1);
    }
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

const MetricGroup::Metric* find_metric(std::string_view name) {
  const std::string_view bare = bare_name(name);
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (metric.name == bare) return &metric;
    }
  }
  return nullptr;
}

bool is_of_layers(std::string_view name) {
  const MetricGroup* const group = find_group(name);
  return group && group->of_layers;
}

std::string group_of_metric(std::string_view name) {
  const MetricGroup* const group = find_group(name);
  return group ? group->name : "";
}

}  // namespace moelab
