#pragma once

/// Where Theorem 1 of Dikkala et al. 2023 ends. Of a model g_U(W x + b) with an unpenalised b it concludes
/// that a local minimum has no weight on the irrelevant coordinates x₂. Its proof moves b at no cost, so that
/// routing by W x alone, as in the paper's experiments, is not among what it covers; and it makes up for a
/// shrunk W₂ by z with a W₂ x₂ + z ~ W₂ x₂, which there is for all a < 1 only where the law of x₂ is
/// self-decomposable, as the normal law is. For a *global* minimum independence of x₂ suffices: among the
/// biases b + W₂ c one does no worse than the mean over x₂.
///
/// The counterexamples are certified. With μ the least eigenvalue of the Hessian at a point, g the norm of
/// the gradient and K a bound on third derivatives within distance 1, 2 K g < μ² puts a strict local minimum
/// within 2 g / μ (Newton–Kantorovich). g is that of 50 decimal digits and, the rule for x₂ being the
/// trapezoidal one for an analytic function under a normal density, includes the change when its step is
/// halved.

#include "analysis/theory/check.h"

namespace moelab::router_bias {

/// ‖W₂‖ / ‖W‖ at a strict local minimum of E‖y − Σ_e r_e u_e‖² + λ₁ ‖W‖² + λ₂ ‖U‖², r = softmax(W x), with
/// E = 3, two relevant coordinates and one irrelevant N(0, 1), λ₁ = λ₂ = .003; x₁ is 0 with mass .4 and one
/// of three points of norm 4 at 120° with mass .2 each, y = (0, 0), (0, 1), (0, −1), (6, 0). Predicted: 0.
CheckFinding check_without_bias(const CheckEffort& effort);

/// |W₂| at the strict local minimum in (W₂, b) of E g(W₂ x₂ + b)² + λ₁ W₂², g(s) = (s² − 1)², x₂ = ±1: b = 0
/// and W₂² = 1 − (λ₁ / 4)^{1/3}. Predicted: 0.
CheckFinding check_two_points(const CheckEffort& effort);

/// Laws of x₂ for which steps are tried.
enum class IrrelevantLaw {
  laplace,    ///< self-decomposable: a x₂ + z ~ x₂ for z = 0 with probability a², else Laplace
  two_point,  ///< ±1, not self-decomposable
};

/// The decrease of the loss from (W₂, b) to (0, b + W₂ c), c the best value of x₂, less λ₁ ‖W₂‖²: the
/// smallest over random mixtures, b where it is best for W₂. Predicted: at least 0. Without `shift`, c = 0.
CheckFinding check_global_step(const CheckEffort& effort, IrrelevantLaw law, bool shift = true);

/// The decrease from (W₂, b) to (a W₂, b + W₂ z), z the best of its values, over λ₁ (1 − a²) ‖W₂‖²: the
/// smallest over random mixtures, b where it is best for W₂, and a near 1. Predicted: at least 1 under the
/// Laplace law. Without `shift`, z = 0.
CheckFinding check_local_step(const CheckEffort& effort, bool shift = true);

}  // namespace moelab::router_bias
