#pragma once

/// Second derivatives of the training loss in the rows of the router (Nielsen et al. 2025, proof of
/// Proposition 2).

#include "sim/base/types.h"

namespace moelab {

/// A mixture f(x_i) = Σ_e r_ie o_ie with r_i = softmax(W z_i), on n samples with the squared loss
/// L = (1/n) Σ_i ‖f(x_i) − y_i‖². z is what meets the router rows: x for the linear router, M h for adaptive
/// clustering, whose M carries no gradient. A gate over selected experts fits too, the selection held fixed:
/// renormalised gates enter as r, zero for the others; gates that keep the raw r enter with outputs zero for
/// the others.
struct MixtureSamples {
  Matrix features;       ///< z (n, d)
  Matrix probabilities;  ///< r (n, E)
  Matrix outputs;        ///< o (n, E·o), expert after expert
  Matrix targets;        ///< y (n, o)
};

/// `exact`: ∂²L/∂W², by formula. `gauss_newton`: without the curvature of f, which is positive semidefinite
/// and equal to the exact one where f = y.
enum class RouterCurvature { exact, gauss_newton };

/// The Hessian in all rows, (E·d, E·d), row after row: the block of rows e and k is (1/n) Σ_i B_ek(i) z_i
/// z_iᵀ with, for a_e = o_e − f and ρ = f − y,
///   B_ek = 2 r_e r_k a_eᵀa_k                                        (Gauss-Newton)
///        + 2 δ_ek r_e ρᵀa_e − 2 r_e r_k ρᵀ(a_e + a_k).
/// The paper takes B to be one constant for all samples (its Eq. 30), which it is not: ρᵀa_e depends on the
/// sample and may be negative. Softmax ignores a shift of all scores, so that Σ_k B_ek = 0 and the Hessian
/// has d zero eigenvalues at least: take one expert's block, as the paper does, or without_common_shift.
/// Throws InvalidOption where shapes differ.
Matrix router_hessian(const MixtureSamples& batch, RouterCurvature curvature);

/// The block of row e alone, (d, d): ∂²L/∂w_e².
Matrix expert_block(const Matrix& hessian, int experts, int expert);

/// The Hessian restricted to changes of W whose rows add up to 0, in an orthonormal basis of them,
/// ((E − 1)·d, (E − 1)·d).
Matrix without_common_shift(const Matrix& hessian, int experts);

/// ∂L/∂W (E, d), from the same batch.
Matrix router_gradient(const MixtureSamples& batch);

}  // namespace moelab
