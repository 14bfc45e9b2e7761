#include "app/metrics/metric_groups.h"
#include "sim/train/gradient_error.h"

namespace moelab {
namespace {

struct GradientMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class GradientMeter final : public Meter<Real> {
 public:
  GradientMeter(const GradientMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : setting_(setting) {}

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    // Gradients are those of the training population, not of an evaluation's.
    if (unmet_need("population_gradient_norm", setting_.subject)) return;
    const TrainOptions& train = setting_.experiment.train;
    const GradientError error =
        population_gradient_error(moment.model, moment.objective, setting_.problem, train, setting_.seeds,
                                  static_cast<std::uint64_t>(moment.step), moment.workspace);
    values["population_gradient_norm"] = error.norm;
    values["population_gradient_standard_error"] = error.standard_error;
  }

 private:
  MeterSetting<Real> setting_;
};

}  // namespace

MetricGroup gradient_metrics() {
  MetricGroup group = metric_group<GradientMetricOptions, GradientMeter>(
      "gradient",
      "how well population gradients are known; empty for sample gradients; uses the routing of training",
      {{"population_gradient_norm", true, "norm of the gradient, mean over 8 independent rules",
        "norm of the population gradient", "gradient"},
       {"population_gradient_standard_error", true, "standard error of a single rule's gradient, as a norm",
        "standard error of the population gradient", "standard error"}});
  group.needs = {&needs::own_data, &needs::population_gradient};
  return group;
}

}  // namespace moelab
