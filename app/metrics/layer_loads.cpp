#include <cmath>

#include "analysis/metrics/load.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct LayerLoadsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class LayerLoadsMeter final : public Meter<Real> {
 public:
  LayerLoadsMeter(const LayerLoadsMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& /*values*/) override {
    if (moment.layer() == 0) deviations_.clear();
    const std::optional<double> of_layer = expert_load_std_percent(moment.here.loads());
    if (of_layer) deviations_.push_back(*of_layer);
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (!moment.model.network->has_router() ||
        deviations_.size() != static_cast<std::size_t>(moment.model.network->layers()))
      return;
    const Eigen::Map<const Vector> deviations(deviations_.data(),
                                              static_cast<Eigen::Index>(deviations_.size()));
    const double mean = deviations.mean();
    values["expert_load_std_percent_mean"] = mean;
    values["expert_load_std_percent_spread"] = std::sqrt((deviations.array() - mean).square().mean());
  }

 private:
  std::vector<double> deviations_;  ///< of the layers so far
};

}  // namespace

MetricGroup layer_loads_metrics() {
  MetricGroup group = metric_group<LayerLoadsMetricOptions, LayerLoadsMeter>(
      "layer_loads", "balance of a whole stack (Nielsen et al. 2025, Table 6); uses selected, as load does",
      {{"expert_load_std_percent_mean", false, "mean over layers of expert_load_std_percent",
        "load standard deviation (% of rows), mean over layers", "load deviation, mean"},
       {"expert_load_std_percent_spread", false, "its standard deviation over layers (ddof 0)",
        "load standard deviation (% of rows), spread over layers", "load deviation, spread"}});
  group.by_default = false;
  group.needs = {&needs::router, &needs::model};
  return group;
}

}  // namespace moelab
