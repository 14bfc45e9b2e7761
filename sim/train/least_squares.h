#pragma once

/// Least-squares fits: they minimise the loss on the whole training set until convergence.

#include <optional>
#include <vector>

#include "sim/data/mixing_measure.h"
#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/gaussian_experts.h"
#include "sim/train/sample_loss.h"
#include "sim/train/trainer.h"

namespace moelab {

/// Whether the training rule is "lbfgs", so that training is a fit.
bool is_least_squares(const TrainOptions& options);

/// The minima that a fit of many starts found. Two minima are distinct if their losses differ by more than a
/// relative 1e-9. A minimum is near if its loss on all samples exceeds the least loss L by at most L p / (20
/// n). The data cannot tell a near minimum from the least one.
struct MinimaFound {
  int distinct = 0;  ///< distinct minima on the samples of the first fits
  int near = 0;      ///< near minima among the polished ones, including the least
  /// The largest distance, over pairs of near minima, from an expert (a, b) of one to the nearest expert of
  /// the other. 0 if there is one near minimum, or if the model is not a mixing measure.
  double diameter = 0;
};

/// What the start "search" found.
struct SearchFound {
  int times_best = 0;       ///< starts that ended in the best basin
  bool is_settled = false;  ///< whether the search stopped by its rule, not at its most starts
  /// The fit's loss minus the loss of the best oracle-started fit, over the latter, which estimates the
  /// variance of the noise. For likelihood ℓ of the oracle-started fit minus ℓ, in nats. Empty without an
  /// oracle. A positive value means that the search missed a better fit.
  std::optional<double> oracle_gap = std::nullopt;
};

/// A fit is worse than its oracle-started fit if the gap is larger than this share of the noise.
inline constexpr double kOracleTolerance = 1e-6;

/// How a fit ended.
struct FitOutcome {
  TrainState state = TrainState::done;
  bool converged = false;                            ///< whether the kept start converged
  int evaluations = 0;                               ///< evaluations of loss and gradient, over all starts
  int starts = 0;                                    ///< starts made
  std::optional<MinimaFound> minima = std::nullopt;  ///< only for the starts "best" and "search"
  std::optional<SearchFound> search = std::nullopt;  ///< only for the start "search"
  // Set by fits with maximum likelihood.
  std::optional<GaussianExperts> mixture = std::nullopt;
  double likelihood = 0;  ///< ℓ on the training set
  std::optional<double> likelihood_gain =
      std::nullopt;  ///< ℓ minus the truth's ℓ, if the truth has variances
};

/// Fits the free parameters of `model` by least squares:
///
///     argmin_θ L(θ), L(θ) = (1/n) Σ_i (f_θ(x_i) − y_i)²
///
/// The free parameters are the experts' alone if the router is frozen. The method is limited-memory BFGS
/// (Nocedal 1980; Luksan's implementation) with the model's exact gradients, in double precision.
///
/// The optimizer of `options` is "lbfgs", and `steps` limits the evaluations of each start. The
/// optimizer's bound B keeps every |θ_i| ≤ B, like the compact parameter space of the theory. Without a
/// bound, a superfluous component can move to an ever steeper expert with an ever smaller gate. State that a
/// training step would change stays at its start. `model_options` are the options that made the model.
///
/// Convergence. A fit has converged when ‖∇L‖ ≤ √L / n. The norm omits entries that push a parameter beyond
/// its bound. This threshold has the order of one sample's contribution to the gradient. The optimizer's
/// error is then small against the sampling error in every direction with curvature well above 1/n. A smaller
/// threshold is out of reach for rectifier experts: L has kinks, where ∇L jumps by as much. Without noise L →
/// 0, and then ‖∇L‖ ≤ 1e-7 suffices.
///
/// Stopping. A start continues beyond this point. It stops when every entry of ∇L is at most 1e-8, when L
/// stops changing in double precision, or after `steps`. Superfluous components have very flat directions. A
/// fit that stopped earlier would stay near its start there, whatever the data say. Directions that do not
/// change f (a common shift of the biases) have no gradient, so they stay at their start.
///
/// Starts:
/// - "cold" (the default) starts at the model's own initial weights.
/// - "warm" starts at `truth` and needs model.experts ≥ k*, the components of `truth`. Fit i starts at
///   component i mod k*. The fits of a component share its weight exp(β0). Each parameter is moved by an
///   independent N(0, perturbation²).
/// - "best" fits `starts` models to the first `rows` samples. The starts alternate: near the truth (if it is
///   known and has the model's form), at k-means clusters (if the model is a mixing measure), and at initial
///   weights. Another n has other starts. polish() then takes the `polished` lowest distinct minima to all
///   samples, in at most `steps` steps each. PolishedFit defines convergence for these. The lowest minimum is
///   kept.
///
/// - "search" never starts near the truth. Its starts alternate: at k-means clusters of x and y, at clusters
///   of x and the residuals of the best fit so far, at initial weights, and at the best fit so far with two
///   components merged and one split. Each start is fitted to the first `rows` samples and polished there.
///   Starts whose losses differ by at most 1e-6 of the noise, or by L p / (1000 n), ended in one basin. The
///   search stops when the best basin and the second best were found `repeats` times each, or after `starts`.
///   The `polished` lowest basins are then polished on all samples. `oracle` further starts near the truth
///   are fitted to all samples. They give only a lower bound of the loss, SearchFound::oracle_gap. They never
///   give the fit.
///
/// If a cold or warm start does not converge, another follows, up to `tries` starts. The first start that
/// converges is kept, else the start with the least L. The model ends at the kept fit.
///
/// Likelihood. If the optimizer has `likelihood`, the fit is the Gaussian mixture of linear experts with the
/// largest likelihood (sim/train/gaussian_experts.h). It uses the starts of "best". EM runs up to
/// `evaluations` rounds on the first rows, and Newton's method continues on all samples. Maxima are distinct
/// if they differ by more than 1e-6 nats, and near if they differ by at most p / (20 n). The model ends at
/// the gates and experts of this mixture.
///
/// Ends as `diverged` if no start has a finite loss, and as `interrupted` if `progress` returns true. Throws
/// InvalidOption if a warm start has no truth of the model's form.
FitOutcome fit_least_squares(Model<double>& model, const ModelOptions& model_options,
                             const Objective<double>& objective, const TrainingSet<double>& data,
                             const TrainOptions& options, const MixingMeasure* truth, const Seeds& seeds,
                             const TrainCallbacks& callbacks, Workspace<double>& workspace);

// The method of Levenberg (1944) and Marquardt (1963), which polishes least-squares fits.

/// Samples used for the curvature; the gradient uses all samples. This takes a quarter of the time of the
/// full curvature, for three experts on 32,000 samples from two experts. In valleys without a bottom the fit
/// ends 0.14 L p / n higher (mean over nine pairs of router and expert). Identifiable parameters end as low.
inline constexpr int kCurvatureRows = 2000;

/// A minimum of L.
struct PolishedFit {
  std::vector<double> parameters;  ///< θ (p)
  double loss = 0;                 ///< L(θ)
  /// The decrease of L that a Gauss-Newton step predicts: ½ ∇Lᵀ H⁻¹ ∇L with H = (2/m) JᵀJ. H covers the first
  /// m samples and the parameters that are not at a bound. The decrease must be small against L p / n, the
  /// scale of the sampling error.
  double promised = 0;
  bool converged = false;  ///< promised ≤ L p / (1000 n)
};

/// Minimises L from `start` with steps δ that solve (H + λ diag H) δ = −∇L.
///
/// λ adapts to how well H predicted the last step (Nielsen, Damping Parameter in Marquardt's Method, 1999).
/// The method stops when the predicted decrease is at most 10⁻¹² L, when no step lowers L, or after `steps`
/// steps. Steps end at the bound. H covers the first `curvature_rows` samples. A parameter that is held at
/// its bound does not take part in the next step. The model must have one output.
PolishedFit polish(SampleLoss& loss, std::vector<double> start, int steps,
                   int curvature_rows = kCurvatureRows);

}  // namespace moelab
