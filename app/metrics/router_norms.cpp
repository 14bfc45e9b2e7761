#include "analysis/metrics/router_norms.h"

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct RouterNormsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class RouterNormsMeter final : public Meter<Real> {
 public:
  RouterNormsMeter(const RouterNormsMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : signal_basis_(setting.experiment.model.input_width ? Matrix() : setting.problem.signal_basis()) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const Model<Real>& model = moment.moment.model;
    const std::string name = "router_weight" + model.network->layer_ending(moment.layer());
    for (const NamedArray<Real>& array : model.network->arrays(model.parameters)) {
      if (array.name != name) continue;
      const Matrix weight = widen(array.values, array.shape[0], array.shape[1]);
      set(values, "router_norm_ratio", router_norm_ratio(weight));
      if (signal_basis_.size() > 0) {
        set(values, "router_signal_fraction", router_signal_fraction(weight, signal_basis_));
      }
    }
  }

 private:
  Matrix signal_basis_;
};

}  // namespace

MetricGroup router_norms_metrics() {
  MetricGroup group = metric_group<RouterNormsMetricOptions, RouterNormsMeter>(
      "router_norms", "the weights M_i into expert i of a router that is linear in x; uses no routing",
      {{"router_norm_ratio", true, "E‖M_i‖² ÷ (E‖M_i‖)²: 1 when all are equal", "norm ratio E‖M‖² ÷ (E‖M‖)²",
        "norm ratio"},
       {"router_signal_fraction",
        false,
        "share of Σ_i ‖M_i‖² inside the subspace on which the target depends",
        "router weight in signal subspace",
        "signal fraction",
        {&needs::signal_subspace}}});
  group.of_layers = true;
  group.needs = {&needs::router_weight};
  return group;
}

}  // namespace moelab
