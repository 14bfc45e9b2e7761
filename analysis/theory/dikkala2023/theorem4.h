#pragma once

/// Theorem 4 of Dikkala et al. 2023: population gradient descent on the truncated two-component problem (see
/// analysis/theory/dikkala2023/two_component.h) from tiny random weights with η_u ≫ η_w ends with ŵ = ±z, ‖w‖
/// → ∞ and u = ±v.
///
/// Limits are checked at a finite number of steps against what the proof's own reduction (w = α z, u = u*(w))
/// says there. The rule of the descent can be replaced by a wrong one.

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023/two_component_descent.h"

namespace moelab {

/// The largest 1 − |cos(w, z)| after 100 steps from starts of scale 1e-4 with wᵀz > 0 (`side` 1) or < 0 (−1).
CheckFinding check_alignment(const CheckEffort& effort, int side,
                             const TwoComponentRule& rule = exact_gradient);

/// ‖w‖ after `steps` against `reference`, from starts of scale 1e-3 on both sides: the value furthest off.
CheckFinding check_norm(const CheckEffort& effort, int steps, double reference,
                        const TwoComponentRule& rule = exact_gradient);

/// ‖w‖ after 10⁵ steps against the reduced flow from the descent's ‖w‖ after 10³: the value furthest off.
CheckFinding check_growth(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// d‖w‖/d log t over the last decade before 10⁵ steps against that of the reduced flow from ‖w‖ after 10⁴, to
/// 1 %. On the component, 1 − q ≈ 2 exp(−‖w‖ x₁) with
/// 1 − ρ ≤ x₁ ≤ 1 + ρ, and the slope of the loss is of the order of its square: −d log(slope)/d‖w‖ lies
/// between 2(1 − ρ) and 2(1 + ρ), so that ‖w‖ gains between 1/(2(1 + ρ)) and 1/(2(1 − ρ)) per unit of log t.
CheckFinding check_log_rate(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// ‖u − sign(wᵀz) v‖ / ‖v‖ after 10⁵ steps against E[q]/E[q²] − 1, which u*(w) leaves at this ‖w‖.
CheckFinding check_experts(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

/// The share of random starts that end on the other side of wᵀz = 0. Near zero the descent is linear in
/// (wᵀz, vᵀu), and its growing direction has the sign of √η_u ‖v‖ wᵀz + √η_w vᵀu: for independent normal
/// entries of equal scale a share arctan(√(η_w/η_u))/π changes side, none as η_u/η_w → ∞.
CheckFinding check_side(const CheckEffort& effort, const DescentRates& rates,
                        const TwoComponentRule& rule = exact_gradient);

/// The loss and its gradient do not depend on the weights p, 1 − p of the components at z and −z: g has a
/// symmetric law and q is odd, so that f(−x) = −f(x) and both terms of p E‖f − v‖² + (1 − p) E‖f + v‖² are
/// equal. Measured: the largest relative difference from even weights over random w, u and the same rows ±g
/// of both components, which share no sum. A router with a `bias` is not odd.
CheckFinding check_weights(const CheckEffort& effort, double bias = 0);

/// Whole Gaussians: E[y | x] = v tanh(zᵀx/σ²), so the model is exact at w = 2z/σ², u = v, and ‖w‖ stays
/// finite.
CheckFinding check_untruncated(const CheckEffort& effort, const TwoComponentRule& rule = exact_gradient);

}  // namespace moelab
