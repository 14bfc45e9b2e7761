#pragma once

/// Population loss and gradient of the two-component problem by exact one-dimensional quadrature
/// (Dikkala et al. 2023, appendix F).

#include <Eigen/Core>
#include <limits>

#include "sim/base/types.h"

namespace moelab {

/// x = ±(z + g) with probability 1/2 each, g ~ N(0, σ² I) given ‖g‖ ≤ ρ, target ±v.
struct TwoComponentProblem {
  Vector mean;                                              ///< z (d)
  Vector value;                                             ///< v (o)
  double noise_std = 0.15;                                  ///< σ
  double radius = std::numeric_limits<double>::infinity();  ///< ρ; infinite for whole Gaussians
};

/// Expectations over x = z + g of q = 2 sigmoid(wᵀx) − 1 = tanh(wᵀx / 2), its derivative q' = (1 − q²) / 2
/// and t = gᵀŵ, ŵ = w / ‖w‖.
struct RouterMoments {
  double q = 0;       ///< E[q]
  double q_q = 0;     ///< E[q²]
  double dq = 0;      ///< E[q']
  double q_dq = 0;    ///< E[q q']
  double t_dq = 0;    ///< E[t q']
  double t_q_dq = 0;  ///< E[t q q']
};

/// ∂L/∂w (d) and ∂L/∂u (o).
struct TwoComponentGradient {
  Vector router;
  Vector expert;
};

/// The model f(x) = p u + (1 − p)(−u) = q u, p = sigmoid(wᵀx), under
///   L(w, u) = E‖f − v‖² over the component at z + E‖f + v‖² over the one at −z = 2 E‖q u − v‖²:
/// the sum over the components as in the paper; the mixture's mean is half of it.
///
/// g is spherical, so t has the density ∝ φ(t/σ) P(χ²_{d−1} ≤ (ρ² − t²)/σ²) whatever w, and the rest of g
/// averages out: every expectation is an integral over t. It is taken with t = ρ sin θ, which makes the
/// density analytic up to the ends, by a Gauss-Legendre rule in θ whose nodes and weights are computed once.
/// Absolute error of the moments below 1e-13 for ‖w‖ min(ρ, 8.5 σ) ≤ 20.
class TwoComponentPopulation {
 public:
  /// Throws InvalidOption for an empty z or v, σ ≤ 0, ρ ≤ 0, or a ball of radius ρ whose mass underflows.
  explicit TwoComponentPopulation(TwoComponentProblem problem);

  const TwoComponentProblem& problem() const { return problem_; }

  /// The moments at wᵀz = `signal` and ‖w‖ = `norm`.
  RouterMoments moments(double signal, double norm) const;
  RouterMoments moments(const Vector& w) const { return moments(w.dot(problem_.mean), w.norm()); }

  /// L = 2 (E[q²] ‖u‖² − 2 E[q] vᵀu + ‖v‖²).
  double loss(const Vector& w, const Vector& u) const;

  /// ∂L/∂u = 4 (E[q²] u − E[q] v), ∂L/∂w = 4 E[q' (q ‖u‖² − vᵀu)(z + t ŵ)].
  TwoComponentGradient gradient(const Vector& w, const Vector& u) const;

  /// u*(w) = v E[q] / E[q²], the minimiser of L over u for w ≠ 0.
  Vector best_expert(const Vector& w) const;

 private:
  static constexpr int kNodes = 192;
  using NodeArray = Eigen::Array<double, kNodes, 1>;

  TwoComponentProblem problem_;
  NodeArray t_;
  NodeArray weight_;  // sums to 1
};

}  // namespace moelab
