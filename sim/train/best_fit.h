#pragma once

/// The start "best" of a least-squares fit.

#include "sim/data/mixing_measure.h"
#include "sim/train/batches.h"
#include "sim/train/least_squares.h"
#include "sim/train/sample_loss.h"
#include "sim/train/train_options.h"

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

// Where least-squares fits of mixtures begin.

/// Starts come in turns: near the truth, at clusters, at random; one that cannot be made is a random one.
enum class StartTurn { near_truth, clusters, random };
inline StartTurn start_turn(int number) {
  return static_cast<StartTurn>(number % 3);
}

/// The stream of a start for n samples: another n has other starts, more starts have the same first ones.
Engine start_stream(const Seeds& seeds, int samples, int number);

/// Fit i at component i mod k* of `truth` (of two levels so within each group), its weight exp(β0) shared by
/// the fits of that component, each parameter moved by an independent N(0, perturbation²). At least k*
/// experts.
MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine);

/// Experts that share out the samples by themselves: the clusters of k-means (k-means++ seeds) on x and y,
/// each coordinate in units of its deviation. An expert starts at the ridge regression of y on its cluster's
/// x (of a power p, of sign(y) |y|^(1/p)); a linear router at β1 = c, β0 = −‖c‖²/2 and a cosine at β1 = c, β0
/// = 0, with c the cluster's mean input less that of all samples; squared distances at the mean input itself;
/// two levels at the c of each expert and, of a group, their mean. The first shared expert starts at the
/// regression of all samples, the others at 0, and routed ones at what it leaves. For one output, of the
/// first `rows` samples.
MixingMeasure clustered_start(const MixtureForm& form, const TrainingSet<double>& data, int rows, int dim,
                              int experts, Engine& engine);

// The best of many maximum-likelihood fits of a Gaussian mixture of linear experts.

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
