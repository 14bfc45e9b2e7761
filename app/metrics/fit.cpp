#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct FitMetricOptions {
  void bind(Fields& /*fields*/) {}
};

}  // namespace

MetricGroup fit_metrics() {
  MetricGroup group{
      {"fit", "how a least-squares fit (optimizer lbfgs) ended, at its last step; uses no routing",
       FitMetricOptions{}, FitMetricOptions{}},
      {{"fit_converged", false, "1 when the gradient is below √L / n, else 0"},
       {"fit_evaluations", true, "evaluations of loss and gradient, all starts together"},
       {"fit_starts", true, "starts that were made"}}};
  group.by_default = false;
  return group;
}

}  // namespace moelab
