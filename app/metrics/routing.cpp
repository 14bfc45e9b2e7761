#include "analysis/metrics/entropy.h"
#include "analysis/metrics/variance.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct RoutingMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class RoutingMeter final : public Meter<Real> {
 public:
  RoutingMeter(const RoutingMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const MatrixView probabilities = moment.here.probabilities();
    ScoreVariance variance;
    variance.add(probabilities);
    values["routing_entropy"] = routing_entropy(probabilities);
    set(values, "router_margin", router_margin(probabilities));
    if (const MatrixView base = moment.here.base_probabilities(); base.size() > 0)
      values["routing_entropy_base"] = routing_entropy(base);
    values["routing_variance_eq42"] = variance.routing_variance_eq42();
    values["score_variance"] = variance.score_variance();
    values["score_row_variance"] = variance.score_row_variance();
  }
};

}  // namespace

MetricGroup routing_metrics() {
  MetricGroup group = metric_group<RoutingMetricOptions, RoutingMeter>(
      "routing",
      "the router's probabilities on the test rows (Guo et al. 2025; Nguyen et al. 2025); uses probabilities",
      {{"routing_entropy", false, "mean over rows of H(r(x)), nats", "routing entropy of a row (nats)",
        "routing entropy"},
       {"routing_entropy_base",
        false,
        "the same before tokens mix their routing, of the same model",
        "routing entropy of a row before mixing (nats)",
        "before mixing",
        {&needs::mixed_tokens}},
       {"router_margin",
        false,
        "mean over rows of the largest probability less the second largest",
        "margin of the likeliest expert",
        "margin",
        {&needs::several_experts}},
       {"routing_variance_eq42", false, "mean over experts of (mean r_e − 1/E)²: imbalance of the mean gate",
        "imbalance of the mean gate", "gate imbalance"},
       {"score_variance", false, "mean over experts of the variance of r_e over rows (ddof 0)",
        "variance of probabilities over rows", "over rows"},
       {"score_row_variance", false, "mean over rows of the variance of r_e over experts (ddof 0)",
        "variance of probabilities over experts", "over experts"}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

}  // namespace moelab
