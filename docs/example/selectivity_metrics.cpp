#include "analysis/metrics/meters.h"

namespace moelab {
namespace {

class SelectivityMeter final : public RowMeter {
 public:
  SelectivityMeter(const NoMetricOptions& /*options*/, const RowSetting& /*setting*/) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    double sum = 0;
    rows.visit([&](const RowBlock& block) { sum += block.probabilities.rowwise().maxCoeff().sum(); });
    metrics.values["largest_probability"] = sum / static_cast<double>(rows.rows());
  }
};

}  // namespace

MetricGroup selectivity_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, SelectivityMeter>(
      "selectivity", "how large the largest probability of a row is; uses probabilities",
      {metric("largest_probability", true, "mean over rows of max_e r_e(x)", "largest probability",
              "largest")});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::probabilities};
  return group;
}

}  // namespace moelab
