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
      {{"fit_converged", false, "1 when the gradient is below √L / n, else 0", "share of fits that converged",
        "converged"},
       {"fit_evaluations", true, "evaluations of loss and gradient, all starts together",
        "evaluations of loss and gradient", "evaluations"},
       {"fit_starts", true, "starts that were made", "starts", "starts"}}};
  group.by_default = false;
  group.needs = {&needs::own_data, &needs::least_squares};
  return group;
}

}  // namespace moelab
