#pragma once

/// Population loss of a softmax mixture of constant experts, for statements about its minima.

#include "sim/base/types.h"

namespace moelab {

/// L(W, b, U) = Σ_n ω_n ‖softmax(W x_n + b)ᵀ U − y_n‖² + λ₁ ‖W‖² + λ₂ ‖U‖²: the regularised expected loss of
/// Theorem 3 of Dikkala et al. 2023 with a quadrature rule (x, y, ω) for the expectation. W (E, d), b (E) and
/// U (E, o) stand one after another, row by row, in one vector θ.
struct SoftMixturePopulation {
  Matrix x;       ///< (n, d)
  Matrix y;       ///< (n, o)
  Vector weight;  ///< ω (n), of sum 1
  int experts = 1;
  double router_penalty = 0;  ///< λ₁
  double expert_penalty = 0;  ///< λ₂

  Eigen::Index router_size() const { return experts * x.cols(); }
  Eigen::Index size() const { return experts * (x.cols() + 1 + y.cols()); }

  /// W, b and U as parts of θ.
  Eigen::Map<Matrix> router(Vector& theta) const { return {theta.data(), experts, x.cols()}; }
  Eigen::Map<const Matrix> router(const Vector& theta) const { return {theta.data(), experts, x.cols()}; }
  Eigen::Map<Vector> bias(Vector& theta) const { return {theta.data() + router_size(), experts}; }
  Eigen::Map<const Vector> bias(const Vector& theta) const { return {theta.data() + router_size(), experts}; }
  Eigen::Map<const Matrix> values(const Vector& theta) const {
    return {theta.data() + router_size() + experts, experts, y.cols()};
  }

  /// softmax(W x_n + b) (n, E).
  Matrix probabilities(const Vector& theta) const;
  /// The expectation alone, without λ₁ and λ₂.
  double task_loss(const Vector& theta) const;
  double loss(const Vector& theta) const;
  Vector gradient(const Vector& theta) const;
  /// ∂²L/∂θ², by central differences of the gradient; error about 1e-9.
  Matrix hessian(const Vector& theta) const;
};

/// Where a descent ended.
struct DescentEnd {
  Vector theta;
  double gradient_norm = 0;
  int steps = 0;
};

/// Steps of gradient descent, then Newton steps −|H|⁻¹ ∂L/∂θ, |H| the Hessian with the absolute values of its
/// eigenvalues, which go down along directions of negative curvature; every step is halved until L does not
/// rise. Ends at ‖∂L/∂θ‖ ≤ `tolerance`, or after 1000 steps.
DescentEnd descend(const SoftMixturePopulation& population, const Vector& start, double tolerance);

}  // namespace moelab
