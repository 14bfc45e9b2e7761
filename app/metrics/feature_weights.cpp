#include "analysis/metrics/feature_weights.h"

#include <algorithm>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

const Need weighed_features{
    "a router that weighs features in that layer", [](const MetricSubject& of, int layer) {
      const std::string name = "router_feature_weights" + of.network().layer_ending(layer);
      const std::vector<StateArray> arrays = of.network().state_arrays();
      return std::any_of(arrays.begin(), arrays.end(),
                         [&](const StateArray& array) { return array.name == name; });
    }};

struct FeatureWeightsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class FeatureWeightsMeter final : public Meter<Real> {
 public:
  FeatureWeightsMeter(const FeatureWeightsMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {
  }

  void measure_layer(const LayerMoment<Real>& at, MetricValues& values) override {
    const Model<Real>& model = at.moment.model;
    const std::string name = "router_feature_weights" + model.network->layer_ending(at.layer());
    const double* place = model.state.values.data();
    for (const StateArray& array : model.network->state_arrays()) {
      if (array.name == name) {
        // A first layer's clusters are its own.
        const std::vector<int>& clusters = at.before ? at.before->serving() : at.here.serving();
        set(values, "weight_variation",
            weight_variation(MatrixView(place, array.shape[0], array.shape[1]), clusters));
      }
      place += array.size();
    }
  }
};

}  // namespace

MetricGroup feature_weights_metrics() {
  MetricGroup group = metric_group<FeatureWeightsMetricOptions, FeatureWeightsMeter>(
      "feature_weights",
      "the weights M of an adaptive clustering router after the last step (Nielsen et al. 2025); uses "
      "serving",
      {{"weight_variation", false,
        "mean over rows of the coefficient of variation over features of M of the row's cluster: 0 for M = I",
        "variation of feature weights", "weight variation"}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&weighed_features};
  return group;
}

}  // namespace moelab
