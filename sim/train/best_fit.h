#pragma once

/// The start "best" of a least-squares fit.

#include "sim/train/least_squares.h"
#include "sim/train/least_squares_options.h"
#include "sim/train/sample_loss.h"

namespace moelab {

/// What such a fit is made from.
struct BestFitSetting {
  Model<double>& model;
  const ModelOptions& options;
  const Objective<double>& objective;
  const TrainingSet<double>& data;
  const BestStartOptions& start;
  const LeastSquaresOptions& descent;
  int steps;                   ///< of polishing, at most
  const MixingMeasure* truth;  ///< null where there is none
  const Seeds& seeds;
};

/// Targets are of one number. Throws InvalidOption at "train.start".
void check_best_targets(const Layout& layout);

/// See fit_least_squares(). Throws InvalidOption at "train.start" for models with several outputs, and where
/// L is not the mean of losses of single samples: several layers, losses on the routing, gates that couple
/// rows.
FitOutcome best_fit(const BestFitSetting& setting, SampleLoss& loss, const TrainCallbacks& callbacks);

}  // namespace moelab
