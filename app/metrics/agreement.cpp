#include "analysis/metrics/agreement.h"

#include <map>
#include <utility>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct AgreementMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class AgreementMeter final : public Meter<Real> {
 public:
  AgreementMeter(const AgreementMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& at, MetricValues& values) override {
    const MatrixView probabilities = at.here.probabilities();
    LayerRecord& last = last_[at.layer()];
    const LayerRecord before =
        std::exchange(last, {at.here.serving(), probabilities.colwise().mean().transpose()});
    if (before.serving.empty()) return;
    const ContingencyTable both = routing_table(before.serving, last.serving);
    set(values, "routing_ari", adjusted_rand_index(both));
    set(values, "routing_nmi", normalized_mutual_information(both));
    values["routing_divergence"] = jensen_shannon_divergence(before.mean_routing, last.mean_routing);
  }

  void forget() override { last_.clear(); }

 private:
  struct LayerRecord {
    std::vector<int> serving;  ///< (rows)
    Vector mean_routing;       ///< (E)
  };
  std::map<int, LayerRecord> last_;  ///< by layer
};

}  // namespace

MetricGroup agreement_metrics() {
  MetricGroup group = metric_group<AgreementMetricOptions, AgreementMeter>(
      "agreement",
      "how well two routings of the test rows agree, up to the experts' names: of a recorded step and the "
      "one "
      "before; of two arms, with `analyze`; uses serving, and probabilities for the divergence",
      {{"routing_ari",
        false,
        "adjusted Rand index of the serving experts of both (1 equal, 0 as by chance)",
        "adjusted Rand index of two routings",
        "ARI of routings",
        {&needs::step_before}},
       {"routing_nmi",
        false,
        "their normalised mutual information, I ÷ mean of the two entropies, in [0, 1]",
        "normalised mutual information of two routings",
        "NMI of routings",
        {&needs::step_before}},
       {"routing_divergence",
        false,
        "Jensen–Shannon divergence of the two mean routings E[r(x)], nats: 0 equal, ln 2 nothing shared",
        "Jensen–Shannon divergence of mean routings (nats)",
        "divergence",
        {&needs::probabilities_before}}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

}  // namespace moelab
