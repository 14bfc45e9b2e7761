#include "analysis/metrics/fluctuation.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct LayersMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class LayersMeter final : public Meter<Real> {
 public:
  LayersMeter(const LayersMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    if (!moment.before) return;
    const std::vector<int>&before = moment.before->serving(), &here = moment.here.serving();
    set(values, "router_instability", router_instability(before, here));
    set(values, "assignment_change_share", assignment_change_share(before, here));
    set(values, "layer_ari", layer_ari(before, here));
  }
};

}  // namespace

MetricGroup layers_metrics() {
  MetricGroup group = metric_group<LayersMetricOptions, LayersMeter>(
      "layers", "how the routing changes from a layer to the next (Nielsen et al. 2025); uses serving",
      {{"router_instability", false,
        "mean |S − S'| over pairs of rows, S = 1 where one expert serves both, in the layer before and here",
        "share of pairs of rows joined or parted from layer to layer", "instability"},
       {"assignment_change_share", false,
        "share of rows that do not go where most rows of their expert in the layer before go",
        "share of rows that leave their expert's company", "assignment change"},
       {"layer_ari", false,
        "adjusted Rand index of the serving experts in the layer before and here: 1 where the same rows are "
        "together, 0 as by chance, and where one expert serves all rows",
        "adjusted Rand index of two layers", "agreement of layers"}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::layer_before};
  return group;
}

}  // namespace moelab
