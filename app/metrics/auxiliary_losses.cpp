#include <algorithm>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct AuxiliaryLossesMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class AuxiliaryLossesMeter final : public Meter<Real> {
 public:
  AuxiliaryLossesMeter(const AuxiliaryLossesMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data) {}

  void measure_layer(const LayerMoment<Real>& at, MetricValues& values) override {
    const Moment<Real>& moment = at.moment;
    const Model<Real>& model = moment.model;
    const Network<Real>& network = *model.network;
    const PlacedBlock<Real>& placed = network.placed_mixture(at.layer());
    MixtureScratch<Real>& scratch = network.mixture_scratch(at.layer(), moment.workspace);
    const AuxiliaryLosses& losses = moment.objective.losses;
    const std::vector<AuxiliaryLossKind>& kinds = auxiliary_loss_kinds();
    const double rows = static_cast<double>(data_.rows());
    std::vector<double> means(kinds.size(), 0.0);
    visit_blocks<Real>(
        model, network.train_gating(), data_.test_inputs(), data_.samples(), moment.workspace, [&](int) {
          placed.mixture->pair_outputs(network.values(placed, model.parameters, model.state), scratch);
          const std::vector<double> block =
              losses.values(placed.mixture->routed_batch(scratch, true), scratch.auxiliary);
          const double share = scratch.routing().rows / rows;
          for (std::size_t t = 0; t < kinds.size(); ++t) means[t] += share * block[t];
        });
    for (std::size_t t = 0; t < kinds.size(); ++t) {
      values[kinds[t].name + "_loss"] = means[t];
      values[kinds[t].name + "_loss_weighted"] = losses.coefficient(t) * means[t];
    }
  }

 private:
  const MeasuredData<Real>& data_;
};

std::vector<MetricGroup::Metric> metrics_of_kinds() {
  std::vector<MetricGroup::Metric> metrics;
  for (const AuxiliaryLossKind& kind : auxiliary_loss_kinds()) {
    // Both variance terms and minus an information are negative by definition.
    const bool positive = kind.name.rfind("variance", 0) != 0 && kind.name != "mutual_information";
    metrics.push_back({kind.name + "_loss", positive, "the term that loss." + kind.name + " weighs",
                       kind.name + " loss", kind.name + " loss"});
    metrics.push_back({kind.name + "_loss_weighted", false, "times its coefficient",
                       kind.name + " loss × coefficient", kind.name + ", weighted"});
  }
  return metrics;
}

}  // namespace

MetricGroup auxiliary_losses_metrics() {
  MetricGroup group = metric_group<AuxiliaryLossesMetricOptions, AuxiliaryLossesMeter>(
      "auxiliary_losses",
      "losses on the routing, on the test rows in blocks of 1024 under the training gating, whether or not "
      "training adds them; see the fields of loss; uses probabilities and what gating.train selects",
      metrics_of_kinds());
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::model};
  return group;
}

}  // namespace moelab
