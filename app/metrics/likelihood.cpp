#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct LikelihoodMetricOptions {
  void bind(Fields& /*fields*/) {}
};

}  // namespace

MetricGroup likelihood_metrics() {
  MetricGroup group{
      {"likelihood",
       "a fit of Gaussian experts by maximum likelihood (train.optimizer.likelihood) against the mixture "
       "that "
       "drew the data, at its last step; cells are those of group voronoi; uses no routing",
       LikelihoodMetricOptions{}, LikelihoodMetricOptions{}},
      {{"likelihood_gain", false,
        "mean log-likelihood of the training set under the fit less that under the truth, nats",
        "log-likelihood above the truth's (nats)", "likelihood gain"},
       {"gaussian_voronoi_loss", true,
        "D of Gaussian experts: cells with one fit at power 1; with two at 4 for g and b, 2 for a and the "
        "variance; with three at 6 and 3",
        "Voronoi loss of Gaussian experts", "Voronoi loss"},
       {"variance_error_exact", true,
        "variance of fits alone in their cell, root of the weighted mean square",
        "error of the variance, one fit", "variance, one fit"},
       {"variance_error_over", true, "variance of fits that share a cell, root of the weighted mean square",
        "error of the variance, several fits", "variance, several fits"}}};
  group.by_default = false;
  group.needs = {&needs::own_data, &needs::likelihood_fit};
  return group;
}

}  // namespace moelab
