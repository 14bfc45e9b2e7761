#pragma once

/// Theorem 1 of Nielsen et al. 2025: w_q = (λ/d)/(s_q + α) with Σ_q 1/(s_q + α) = d/λ (Eq. 7) minimises
/// Σ_q w_q s_q + λ KL(uniform ‖ w) over the simplex. Of the d solutions α only the largest, in (−min s, ∞),
/// gives a point of the simplex: the theorem needs the choice that it does not make.

#include <functional>

#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

using WeightRule = std::function<Vector(const Vector& dispersion, double lambda)>;

/// Where a minimiser ended.
struct SimplexMinimum {
  Vector weights;
  /// √(Δᵀ∇²F Δ) of the last Newton step Δ, F the objective times d/λ: below 1/4 it bounds |w_q/w*_q − 1| by
  /// twice itself, F being self-concordant.
  double decrement = 0;
};

/// The minimum of Σ_q w_q s_q − (λ/d) Σ_q log w_q over the simplex, by damped Newton steps within it from
/// uniform weights: it knows neither α nor Eq. 7.
SimplexMinimum minimise_over_simplex(const Vector& dispersion, double lambda);

/// The largest |w_q/w*_q − 1| between the rule and the minimiser.
CheckFinding check_minimiser(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

/// Whether root j of `count`, ascending, is claimed to give a point of the simplex.
using RootClaim = std::function<bool(int j, int count)>;

bool every_root(int j, int count);
bool largest_root(int j, int count);

/// The share of all roots of Eq. 7 for which the claim is right.
CheckFinding check_root_choice(const CheckEffort& effort, const RootClaim& claim);

/// λ for given dispersions at which the weights are claimed to be proportional to 1/s.
using LambdaRule = std::function<double(const Vector& dispersion)>;

double harmonic_lambda(const Vector& dispersion);  ///< d / Σ_q(1/s_q), where α = 0

/// The largest relative difference between the optimal weights at that λ and 1/s, both of sum 1.
CheckFinding check_inverse_weights(const CheckEffort& effort, const LambdaRule& lambda = harmonic_lambda);

/// λ → ∞: d w_q = 1 − (s_q − s̄)/λ + O(λ^{−2}), s̄ the mean over the features. The largest
/// |λ (1 − d w_q) − (s_q − s̄)| in units of max s − min s, at λ a million times that.
CheckFinding check_large_lambda(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

/// λ → 0: w_q = (λ/d)/(s_q − min s) + O(λ²) for all features but the tightest, so that all mass goes there.
/// The largest relative difference, at λ/d a millionth of the smallest s_q − min s.
CheckFinding check_small_lambda(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

}  // namespace moelab
