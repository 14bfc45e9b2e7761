#pragma once

/// Least-squares and likelihood fits with the start "best", which keeps the best of many fits.

#include "sim/data/mixing_measure.h"
#include "sim/model/measure_places.h"
#include "sim/train/batches.h"
#include "sim/train/least_squares.h"
#include "sim/train/sample_loss.h"
#include "sim/train/train_options.h"

namespace moelab {

/// The inputs of best_fit().
struct BestFitSetting {
  Model<double>& model;
  const ModelOptions& options;
  const Objective<double>& objective;
  const TrainingSet<double>& data;
  const BestStartOptions& start;
  const LeastSquaresOptions& descent;
  int steps;                   ///< most steps of polishing
  const MixingMeasure* truth;  ///< null if there is none
  const Seeds& seeds;
};

/// Throws InvalidOption at "train.start", which names `start`, unless each target is one number.
void check_best_targets(const Layout& layout, const std::string& start);

/// Throws InvalidOption at "train.start" for models and losses that best_fit() cannot fit.
void check_best_fit(const Network<double>& network, const Objective<double>& objective,
                    const std::string& start);

/// Whether the data cannot tell a minimum from the least one; see MinimaFound.
bool is_near_minimum(const PolishedFit& least, const PolishedFit& other, int samples);

/// The largest expert_distance() between two of the measures; 0 for fewer than two.
double diameter_of(const std::vector<MixingMeasure>& measures);

/// Runs the start "best" of fit_least_squares().
///
/// Throws InvalidOption at "train.start" for models with several outputs. Also throws if L is not the mean of
/// single samples' losses: for several layers, losses on the routing, or gates that couple rows.
FitOutcome best_fit(const BestFitSetting& setting, SampleLoss& loss, const TrainCallbacks& callbacks);

// Starts of least-squares fits of mixtures.

/// The kinds of starts, which alternate. If a start of one kind is impossible, a random start replaces it.
enum class StartTurn { near_truth, clusters, random };
inline StartTurn start_turn(int number) {
  return static_cast<StartTurn>(number % 3);
}

/// The random stream of start `number` for n samples. Another n gives other starts. More starts keep the
/// earlier ones.
Engine start_stream(const Seeds& seeds, int samples, int number);

/// A start near `truth`: fit i starts at component i mod k*.
///
/// With two levels this holds within each group. The fits of a component share its weight exp(β0). Each
/// parameter is moved by an independent N(0, perturbation²). Needs at least k* experts.
MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine);

/// A start at the clusters of k-means (with k-means++ seeds) on x and y.
///
/// Each coordinate is divided by its standard deviation. Uses the first `rows` samples and needs one output.
/// If `residuals` (rows) are given, they replace y in the clustering, but not in the regressions.
/// Let m be the mean input of a cluster, and let c be m minus the mean input of all samples.
///
/// - An expert starts at the ridge regression of y on its cluster's x. With power p the regression is of
///   sign(y) |y|^(1/p).
/// - A linear router starts at β1 = c, β0 = −‖c‖²/2.
/// - A cosine router starts at β1 = c, β0 = 0.
/// - Squared distances start at m.
/// - A two-level router starts at the c of each expert, and each group at the mean c of its experts.
/// - The first shared expert starts at the regression of all samples, and the other shared experts at 0.
///   Routed experts start at the regression of its residuals.
MixingMeasure clustered_start(const MixtureForm& form, const TrainingSet<double>& data, int rows, int dim,
                              int experts, Engine& engine, const Vector* residuals = nullptr);

// Maximum-likelihood fits of a Gaussian mixture of linear experts: the best of many.

struct LikelihoodFitSetting {
  Model<double>& model;
  const ModelOptions& options;
  const TrainingSet<double>& data;
  const BestStartOptions& start;
  const LikelihoodOptions& likelihood;
  int steps;                   ///< most steps of polishing
  const MixingMeasure* truth;  ///< null if there is none
  const Seeds& seeds;
};

/// Checks the options of a likelihood fit.
///
/// Throws InvalidOption at "train.optimizer.likelihood" unless the model is a softmax of linear scores over
/// linear experts. Throws InvalidOption at "train.start" unless it is "best" or "search".
void check_likelihood_fit(const ModelOptions& model, const std::optional<FitStart>& start);

/// The parts of the mixture that the options leave free.
GaussianForm gaussian_form(const LikelihoodOptions& options);

/// The first `rows` samples of a training set with one target.
RegressionSample regression_sample(const TrainingSet<double>& data, int rows, int dim);

/// Puts the known parts of the form into a start.
void set_known_parts(const GaussianForm& form, GaussianExperts& mixture);

/// Whether the truth is a mixture of the model's form, with at most as many components.
bool knows_truth(const LikelihoodFitSetting& setting);

/// A start at a measure. The variances share the variance of y.
GaussianExperts spread_start(MixingMeasure measure, const RegressionSample& sample);

/// A start near the truth. Needs knows_truth().
GaussianExperts truth_start(const LikelihoodFitSetting& setting, const RegressionSample& sample,
                            double perturbation, Engine& engine);

/// A start at the model's initial weights, with experts at samples.
GaussianExperts random_start(const LikelihoodFitSetting& setting, const MeasurePlaces& places,
                             const RegressionSample& sample, Engine& engine);

/// Writes the highest of the polished fits to the model and describes it in `outcome`.
void finish_likelihood_fit(const LikelihoodFitSetting& setting, const MeasurePlaces& places,
                           const RegressionSample& all, std::vector<GaussianFit> fits, FitOutcome& outcome,
                           const TrainCallbacks& callbacks);

/// Runs the likelihood fit of fit_least_squares(). The options must pass check_likelihood_fit().
FitOutcome likelihood_fit(const LikelihoodFitSetting& setting, const TrainCallbacks& callbacks);

}  // namespace moelab
