#include "analysis/metrics/load.h"

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct LoadMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class LoadMeter final : public Meter<Real> {
 public:
  LoadMeter(const LoadMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const std::vector<std::int64_t> loads = moment.here.loads();
    set(values, "expert_load_max_violation", expert_load_max_violation(loads));
    set(values, "expert_load_std_percent", expert_load_std_percent(loads));
    const std::optional<double> unserved = unserved_share(moment.here.serving());
    if (unserved && *unserved > 0) values["unserved_share"] = *unserved;
  }
};

}  // namespace

MetricGroup load_metrics() {
  MetricGroup group = metric_group<LoadMetricOptions, LoadMeter>(
      "load",
      "how evenly the test rows spread over the experts; uses selected (the first choices where gating.eval "
      "activates every expert)",
      {{"expert_load_max_violation", false, "(max_e load_e − mean load) ÷ mean load"},
       {"expert_load_std_percent", false,
        "standard deviation over experts of the percentage of rows (ddof 0)"},
       {"unserved_share", false, "share of rows that no expert serves; empty where every row is served"}});
  group.of_layers = true;
  return group;
}

}  // namespace moelab
