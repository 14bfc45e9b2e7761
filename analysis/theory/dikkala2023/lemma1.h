#pragma once

/// Lemma 1 of Dikkala et al. 2023: gradient descent on a mixture of constant experts that share their weights
/// with the router is k-means by gradient steps.

#include <functional>

#include "analysis/theory/check.h"
#include "sim/base/types.h"

namespace moelab {

/// One step of size `rate` on centres (k, d) from inputs (n, d); returns the new centres.
using CentreStep = std::function<Matrix(const Matrix& inputs, const Matrix& centres, double rate)>;

/// U − rate · ∂L/∂U for L = (1/n) Σ ‖f(x_i) − x_i‖², f(x) = Σ_j p_j u_j, p_j = 1{j = argmin ‖u_j − x‖}: with
/// the gates as a matrix P (n, k), ∂L/∂U = (2/n) Pᵀ(P U − X).
Matrix expert_gradient_step(const Matrix& inputs, const Matrix& centres, double rate);

/// The same by the trainer: one step of gradient descent on a mixture of constant experts u_j behind a router
/// of squared distances whose centres are u_j, top-1, targets x. The lemma's experts and router share their
/// weights: the router's stay behind the step, and are set to the experts' before the next.
Matrix trained_step(const Matrix& inputs, const Matrix& centres, double rate);

/// u_j + (2 · rate · n_j / n)(mean of cluster j − u_j), cluster j the n_j inputs nearest to u_j: the gradient
/// step on the k-means objective (1/n) Σ min_j ‖x_i − u_j‖². With rate n / (2 n_j) it is Lloyd's step.
Matrix k_means_step(const Matrix& inputs, const Matrix& centres, double rate);

/// The largest entry of |step − k_means_step| over runs of steps from random centres on random inputs.
CheckFinding check_lemma1(const CheckEffort& effort, const CentreStep& step = trained_step);

}  // namespace moelab
