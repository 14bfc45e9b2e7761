#pragma once

/// Least-squares fits: the whole training set at once, to convergence.

#include <optional>
#include <vector>

#include "sim/data/mixing_measure.h"
#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/gaussian_experts.h"
#include "sim/train/sample_loss.h"
#include "sim/train/trainer.h"

namespace moelab {

/// Whether training is a fit: the training rule "lbfgs".
bool is_least_squares(const TrainOptions& options);

/// What a fit of many starts found. Two minima count as distinct where their losses differ by more than 1e-9
/// of them; near is one whose loss on all samples exceeds the least, L, by at most L p / (20 n): the data do
/// not tell it from the least.
struct MinimaFound {
  int distinct = 0;  ///< on the samples of the first fits
  int near = 0;      ///< of those that were polished, the least among them
  /// Between near minima, the largest distance from an expert (a, b) of one to the nearest of the other; 0
  /// for one alone, and for models that are no mixing measure.
  double diameter = 0;
};

/// How a fit ended.
struct FitOutcome {
  TrainState state = TrainState::done;
  bool converged = false;                            ///< of the start that was kept
  int evaluations = 0;                               ///< of loss and gradient, all starts together
  int starts = 0;                                    ///< starts that were made
  std::optional<MinimaFound> minima = std::nullopt;  ///< of start "best"
  // Of a fit by maximum likelihood.
  std::optional<GaussianExperts> mixture = std::nullopt;
  double likelihood = 0;                                 ///< ℓ on the training set
  std::optional<double> likelihood_gain = std::nullopt;  ///< less that of the truth, where that has variances
};

/// argmin_θ L(θ), L(θ) = (1/n) Σ_i (f_θ(x_i) − y_i)², over the free parameters of `model` (those of the
/// experts alone where the router is frozen), by limited-memory BFGS (Nocedal 1980; Luksan's
/// implementation) with the model's exact gradients, in double. Of `options`, whose optimizer is "lbfgs",
/// `steps` limits the evaluations of each start, and the bound B of the optimizer keeps every |θ_i| ≤ B, as
/// the theory's compact parameter space does: without it a superfluous component may run off to an ever
/// steeper expert with an ever smaller gate. What a training step changes beside the parameters stays at its
/// start.
///
/// A fit has converged when ‖∇L‖ ≤ √L / n (entries that push a parameter beyond its bound left out), of the
/// order of what the residual of one sample adds to the gradient: the optimizer's error is then small against
/// the sampling error in every direction of curvature well above 1/n. Where experts are rectifiers L has
/// kinks at which ∇L jumps by as much, so that no smaller gradient can be asked for. Without noise L → 0, and
/// ‖∇L‖ ≤ 1e-7 will do. A start goes on beyond that, until no entry of ∇L is above 1e-8 or L no longer
/// changes in double, or until `steps`: superfluous components have directions so flat that a fit stopped
/// earlier would lie near its start and not where the data want it. Directions that do not change f (a common
/// shift of the biases) have no gradient and stay where they started.
///
/// `options.start` "cold" (the default) begins at the model's own initial weights, "warm" at `truth`
/// (model.experts ≥ its components): fit i at component i mod k*, its weight exp(β0) shared by the fits of
/// that component, each parameter moved by an independent N(0, perturbation²). A start that does not converge
/// is followed by another, `tries` in all; the first that converges is kept, or else the one of least L. The
/// model ends at the kept fit. `diverged` when no start has a finite loss; `interrupted` when `progress` says
/// so.
///
/// "best" fits `starts` models to the first `rows` samples (near the truth where it is known and of the
/// model's form, at clusters of k-means where the model is a mixing measure, at initial weights: in turn;
/// starts of another n are others) and takes the `polished` lowest distinct minima to all samples by
/// polish(), `steps` steps at most: see sim/train/least_squares.h for what converged means then. The lowest
/// is kept.
///
/// With `likelihood` among the optimizer's options the fit is the Gaussian mixture of linear experts of
/// largest likelihood (sim/train/gaussian_experts.h), of the starts of "best", which EM takes up to
/// `evaluations` rounds on the first rows and Newton's method to all samples. Maxima count as distinct above
/// 1e-6 nats, and as near within p / (20 n). The model ends at its gates and experts.
///
/// Throws InvalidOption where a warm start lacks a truth of the model's form. `model_options` are those that
/// the model was made from.
FitOutcome fit_least_squares(Model<double>& model, const ModelOptions& model_options,
                             const Objective<double>& objective, const TrainingSet<double>& data,
                             const TrainOptions& options, const MixingMeasure* truth, const Seeds& seeds,
                             const TrainCallbacks& callbacks, Workspace<double>& workspace);

// Least squares to the last digit: the method of Levenberg (1944) and Marquardt (1963).

/// Samples that the curvature is taken from; the gradient is taken from all. A fit of three experts to 32,000
/// samples of two takes a quarter of the time that it takes with the curvature of all, and ends .14 L p / n
/// higher (mean of nine pairs of a router and an expert), in valleys without a bottom; what is identifiable
/// ends as low.
inline constexpr int kCurvatureRows = 2000;

/// A minimum of L.
struct PolishedFit {
  std::vector<double> parameters;  ///< θ (p)
  double loss = 0;                 ///< L(θ)
  /// What a step of Gauss and Newton promises to take from L, ½ ∇Lᵀ H⁻¹ ∇L with H = (2/m) JᵀJ over the first
  /// m samples and the parameters that no bound holds: at the scale L p / n of the sampling error it is to be
  /// small.
  double promised = 0;
  bool converged = false;  ///< promised ≤ L p / (1000 n)
};

/// Follows (H + λ diag H) δ = −∇L from θ on, λ changed by how well H foretold the last step (Nielsen, Damping
/// Parameter in Marquardt's Method, 1999), until 10⁻¹² of L is promised, no step lowers L, or `steps` are
/// done. Steps end at the bound, and a parameter that is held there stays out of the next. For models with
/// one output.
PolishedFit polish(SampleLoss& loss, std::vector<double> start, int steps);

}  // namespace moelab
