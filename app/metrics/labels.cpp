#include "app/metrics/labels.h"

#include <algorithm>
#include <array>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

/// Of swept paths.
struct Label {
  const char* name;
  const char* axis;
  const char* legend;
};

constexpr std::array kPathLabels = {
    Label{"step", "training step", "step"},
    Label{"data.train_samples", "training samples", "samples"},
    Label{"data.clusters", "clusters", "clusters"},
    Label{"data.dim", "input width", "width"},
    Label{"data.spurious_dims", "spurious dimensions", "spurious dimensions"},
    Label{"data.mean_std", "standard deviation of the means", "mean_std"},
    Label{"data.noise_std", "noise standard deviation", "noise_std"},
    Label{"data.separation", "cluster separation c", "separation"},
    Label{"model.experts", "experts", "experts"},
    Label{"model.layers", "layers", "layers"},
    Label{"model.router.init_scale", "initial scale of the router", "router scale"},
    Label{"model.router.kind", "router", "router"},
    Label{"train.batch_size", "batch size", "batch"},
    Label{"train.steps", "training steps", "steps"},
    Label{"train.weight_decay", "weight decay", "weight decay"},
    Label{"train.lr.router", "learning rate of the router", "router rate"},
    Label{"train.lr.expert", "learning rate of the experts", "expert rate"},
};

const Label* path_label(const std::string& name) {
  const auto* const known = std::find_if(kPathLabels.begin(), kPathLabels.end(),
                                         [&](const Label& label) { return label.name == name; });
  return known == kPathLabels.end() ? nullptr : known;
}

/// A metric's label, and what else its key says.
std::string metric_label(const std::string& name, std::string MetricGroup::Metric::*form) {
  const MetricGroup::Metric* const metric = find_metric(name);
  if (!metric || (metric->*form).empty()) return name;
  const MetricKey key = MetricKey::parse(name);
  std::string label = metric->*form;
  if (key.layer) label += ", layer " + std::to_string(*key.layer);
  for (const std::string& part : {key.variant, key.evaluation}) {
    if (!part.empty()) label += ", " + part;
  }
  return label;
}

}  // namespace

std::string axis_label(const std::string& name) {
  const Label* const path = path_label(name);
  return path ? path->axis : metric_label(name, &MetricGroup::Metric::axis_label);
}
std::string legend_label(const std::string& name) {
  const Label* const path = path_label(name);
  return path ? path->legend : metric_label(name, &MetricGroup::Metric::legend_label);
}

}  // namespace moelab
