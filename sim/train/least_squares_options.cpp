#include "sim/train/least_squares_options.h"

#include "sim/train/optimizer.h"

namespace moelab {

void LeastSquaresOptions::bind(Fields& fields) {
  fields.add("memory", memory, between(1, 1000), "pairs of steps and gradient changes kept");
  fields.add("bound", bound, positive(), "largest absolute value of a parameter (default: none)");
  fields.add(
      "likelihood", likelihood,
      "maximum likelihood of a Gaussian mixture of linear experts, whose variances are fitted, in place of "
      "least squares: EM from every start, Newton's method after it; memory and bound have no effect "
      "(default: least squares; needs train.start \"best\")");
}

void LikelihoodOptions::bind(Fields& fields) {
  fields.add("gate", gate, "whether gates read x; false: weights alone");
  fields.add("slope", slope, "whether experts read x; false: locations alone");
  fields.add("variance", variance, positive(), "of every expert, where it is known (default: fitted)");
}

TrainingRuleKind lbfgs_rule() {
  return {{"lbfgs",
           "least squares over the whole training set by limited-memory BFGS, to convergence; needs "
           "train.steps (the most evaluations of a start) and train.precision \"double\", has no rate and no "
           "batches",
           LeastSquaresOptions{}, LeastSquaresOptions{}}};
}

const std::vector<KindEntry>& FitStartAxis::table() {
  static const std::vector<KindEntry> starts = {
      {"cold", "at the model's own initial weights", ColdStartOptions{}, ColdStartOptions{}},
      {"warm", "at the true measure of the data, each parameter moved by N(0, perturbation²)",
       WarmStartOptions{}, WarmStartOptions{}},
      {"best",
       "at many places, of which the lowest minimum is kept: near the true measure, at the clusters of "
       "k-means and at initial weights in turn; the lowest minima are polished on all samples",
       BestStartOptions{}, BestStartOptions{}},
  };
  return starts;
}

namespace {

void bind_tries(Fields& fields, int& tries) {
  fields.add("tries", tries, between(1, 1000), "starts made until one converges");
}

}  // namespace

void ColdStartOptions::bind(Fields& fields) {
  bind_tries(fields, tries);
}

void WarmStartOptions::bind(Fields& fields) {
  fields.add("perturbation", perturbation, at_least(0), "standard deviation");
  bind_tries(fields, tries);
}

void BestStartOptions::bind(Fields& fields) {
  fields.add("starts", starts, between(1, 10000), "places to start at");
  fields.add("perturbation", perturbation, at_least(0), "standard deviation, of those near the true measure");
  fields.add("rows", rows, between(1, 1e9), "the most samples on which all starts are fitted");
  fields.add("evaluations", evaluations, between(1, 1e6),
             "the most evaluations (rounds of EM) of such a fit");
  fields.add(
      "polished", polished, between(1, 1000),
      "distinct minima, the lowest, that are fitted to all samples by Levenberg and Marquardt's method");
}

}  // namespace moelab
