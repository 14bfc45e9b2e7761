#pragma once

/// Gaussian mixtures of linear experts by maximum likelihood: Y | x ~ Σ_j r_j(x) N(a_j^T x + b_j, ν_j) with r
/// = softmax(β1_j^T x + β0_j).

#include <functional>
#include <optional>

#include "sim/data/mixing_measure.h"

namespace moelab {

/// What of such a mixture is known rather than fitted.
struct GaussianForm {
  bool gate = true;                               ///< whether β1 is fitted, else 0: weights without inputs
  bool slope = true;                              ///< whether a is fitted, else 0: locations
  std::optional<double> variance = std::nullopt;  ///< ν of every expert where it is known
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

/// ℓ = (1/n) Σ_i ln p(y_i | x_i). `responsibilities`, unless null, become p(j | x_i, y_i), (n, k).
double mean_log_likelihood(const GaussianExperts& mixture, const RegressionSample& sample,
                           Matrix* responsibilities = nullptr);

/// What is fitted, in one vector θ (p): β1, β0, a, b by component, then ln ν, without what the form knows.
Vector free_parameters(const GaussianExperts& mixture, const GaussianForm& form);
void set_free_parameters(const Vector& values, const GaussianForm& form, GaussianExperts& mixture);

/// ∂ℓ/∂θ (p).
Vector likelihood_gradient(const GaussianExperts& mixture, const RegressionSample& sample,
                           const GaussianForm& form);

/// One round of EM (Dempster, Laird, Rubin 1977; Jordan, Jacobs 1994): experts by weighted least squares,
/// variances by weighted residuals (not below `least_variance`), gates by Newton's method on Σ_ij p(j | x_i,
/// y_i) ln r_j(x_i). Returns ℓ before the round; it never falls.
double em_round(const RegressionSample& sample, const GaussianForm& form, double least_variance,
                GaussianExperts& mixture);

struct GaussianFit {
  GaussianExperts mixture;
  double likelihood = 0;  ///< ℓ
  int evaluations = 0;    ///< of ℓ or its gradient on all samples, a round of EM counting as one
  /// What a Newton step promises to add to ℓ, ½ gᵀ |H|⁻¹ g, is at most p / (2000 n): a thousandth of what
  /// sampling does to it.
  bool converged = false;
};

/// Rounds of EM until ℓ grows by less than 1e-6 of a nat in a round, or `rounds`.
GaussianFit fit_by_em(GaussianExperts start, const RegressionSample& sample, const GaussianForm& form,
                      int rounds, const std::function<bool()>& interrupted);

/// Newton's method on ℓ with |H| for H (its eigenvalues' signs dropped, damped until ℓ grows), H by central
/// differences of the gradient, `steps` at most.
GaussianFit polish_likelihood(GaussianExperts start, const RegressionSample& sample, const GaussianForm& form,
                              int steps, const std::function<bool()>& interrupted);

/// A thousandth of the variance of y: a component on a single sample, at which ℓ has no bound, keeps that.
double least_variance(const RegressionSample& sample);

}  // namespace moelab
