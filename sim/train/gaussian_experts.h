#pragma once

/// Gaussian mixtures of linear experts, fitted by maximum likelihood: Y | x ~ Σ_j r_j(x) N(a_j^T x + b_j,
/// ν_j) with r = softmax(β1_j^T x + β0_j).

#include <functional>
#include <optional>

#include "sim/data/mixing_measure.h"

namespace moelab {

/// The parts of a mixture that are known and therefore not fitted.
struct GaussianForm {
  bool gate = true;   ///< whether β1 is fitted; if not, β1 = 0 and weights ignore the inputs
  bool slope = true;  ///< whether a is fitted; if not, a = 0 and experts are locations
  std::optional<double> variance = std::nullopt;  ///< ν of every expert, if it is known
};

struct GaussianExperts {
  MixingMeasure measure;  ///< a linear router under a softmax, linear experts
  Vector variance;        ///< ν (k)
};

/// n samples x (n, d), y (n).
struct RegressionSample {
  Matrix x;
  Vector y;
};

/// ℓ = (1/n) Σ_i ln p(y_i | x_i). Writes p(j | x_i, y_i), (n, k), to `responsibilities` unless it is null.
double mean_log_likelihood(const GaussianExperts& mixture, const RegressionSample& sample,
                           Matrix* responsibilities = nullptr);

/// The fitted parameters in one vector θ (p): β1, β0, a and b of each component, then ln ν. Parameters that
/// the form knows are left out.
Vector free_parameters(const GaussianExperts& mixture, const GaussianForm& form);
void set_free_parameters(const Vector& values, const GaussianForm& form, GaussianExperts& mixture);

/// ∂ℓ/∂θ (p).
Vector likelihood_gradient(const GaussianExperts& mixture, const RegressionSample& sample,
                           const GaussianForm& form);

/// One round of EM (Dempster, Laird, Rubin 1977; Jordan, Jacobs 1994). Returns ℓ before the round; ℓ never
/// falls.
///
/// Weighted least squares update the experts. Weighted residuals update the variances, which stay at least
/// `least_variance`. Newton's method on Σ_ij p(j | x_i, y_i) ln r_j(x_i) updates the gates.
double em_round(const RegressionSample& sample, const GaussianForm& form, double least_variance,
                GaussianExperts& mixture);

struct GaussianFit {
  GaussianExperts mixture;
  double likelihood = 0;  ///< ℓ
  int evaluations = 0;    ///< evaluations of ℓ or its gradient on all samples; a round of EM counts as one
  /// Whether the increase of ℓ that a Newton step predicts, ½ gᵀ |H|⁻¹ g, is at most p / (2000 n). This is a
  /// thousandth of the effect of sampling on ℓ.
  bool converged = false;
};

/// Runs EM until ℓ grows by less than 1e-6 nats in a round, or for `rounds` rounds.
GaussianFit fit_by_em(GaussianExperts start, const RegressionSample& sample, const GaussianForm& form,
                      int rounds, const std::function<bool()>& interrupted);

/// Newton's method on ℓ with |H| in place of H, at most `steps` steps. |H| drops the signs of H's
/// eigenvalues. Damping grows until ℓ grows. H is a central difference of the gradient.
GaussianFit polish_likelihood(GaussianExperts start, const RegressionSample& sample, const GaussianForm& form,
                              int steps, const std::function<bool()>& interrupted);

/// The least variance of a component: a thousandth of the variance of y. It bounds ℓ, which has no bound if a
/// component collapses to one sample.
double least_variance(const RegressionSample& sample);

}  // namespace moelab
