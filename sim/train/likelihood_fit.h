#pragma once

/// The best of many maximum-likelihood fits of a Gaussian mixture of linear experts.

#include "sim/train/least_squares.h"
#include "sim/train/least_squares_options.h"

namespace moelab {

struct LikelihoodFitSetting {
  Model<double>& model;
  const ModelOptions& options;
  const TrainingSet<double>& data;
  const BestStartOptions& start;
  const LikelihoodOptions& likelihood;
  int steps;                   ///< of polishing, at most
  const MixingMeasure* truth;  ///< null where there is none
  const Seeds& seeds;
};

/// Throws InvalidOption at "train.optimizer.likelihood" where the model is no softmax of linear scores over
/// linear experts, and at "train.start" for a start other than "best".
void check_likelihood_fit(const ModelOptions& model, const std::optional<FitStart>& start);

/// See fit_least_squares(). For options that check_likelihood_fit() lets pass.
FitOutcome likelihood_fit(const LikelihoodFitSetting& setting, const TrainCallbacks& callbacks);

}  // namespace moelab
