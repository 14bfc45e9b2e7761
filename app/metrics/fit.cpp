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
      {{"fit_converged", false,
        "1 when the gradient is below √L / n (start \"best\": when L p / (1000 n) at most is left to gain), "
        "else 0",
        "share of fits that converged", "converged"},
       {"fit_evaluations", true, "evaluations of loss and gradient, all starts together",
        "evaluations of loss and gradient", "evaluations"},
       {"fit_starts", true, "starts that were made", "starts", "starts"},
       {"fit_minima",
        true,
        "distinct minima met by the starts on their samples",
        "distinct minima",
        "minima",
        {&needs::best_start}},
       {"fit_near_minima",
        true,
        "polished minima whose loss exceeds the least by L p / (20 n) at most, the least among them: the "
        "data "
        "do not tell between them",
        "near minima",
        "near minima",
        {&needs::best_start}},
       {"fit_near_diameter",
        false,
        "between near minima, the largest distance from an expert (a, b) of one to the nearest of the other",
        "distance of near minima",
        "diameter",
        {&needs::best_start}}}};
  group.by_default = false;
  group.needs = {&needs::own_data, &needs::least_squares};
  return group;
}

}  // namespace moelab
