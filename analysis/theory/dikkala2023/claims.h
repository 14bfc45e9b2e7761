#pragma once

/// Claims 1-3 in the proof of Theorem 4 of Dikkala et al. 2023, on the truncated component G at z, ‖z‖ = 1,
/// for q = 2 sigmoid(wᵀx) − 1 and q' = (1 − q²)/2:
///   1. wᵀz > 0 implies E[q] > 0;
///   2. E[q' q] E[q] < E[q²] E[q'];
///   3. w = α z, α > 0 implies E[x₁ q' q] E[q] < E[q²] E[x₁ q'], x₁ = xᵀz.
/// The paper's proofs write q as h(t) = 1 − 2 sigmoid(t), which is the negative of the q of its loss; with it
/// Claim 1 and q' = (1 − q²)/2 are wrong.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023/two_component.h"

namespace moelab {

/// h(t): the routing function of a score.
using RoutingFunction = std::function<double(double score)>;

double routing_function_as_printed(double score);  ///< 1 − 2 sigmoid(t)
double routing_function(double score);             ///< 2 sigmoid(t) − 1

/// The moments of one draw, exact or deliberately wrong.
using MomentRule = std::function<RouterMoments(const TwoComponentPopulation&, double signal, double norm)>;

RouterMoments exact_moments(const TwoComponentPopulation& population, double signal, double norm);
/// The moments of −q with its derivative −q'.
RouterMoments moments_as_printed(const TwoComponentPopulation& population, double signal, double norm);

/// The largest |h' − (1 − h²)/2|, h' by central differences.
CheckFinding check_routing_derivative(const RoutingFunction& h);

/// Each gives the share of random (d, σ, ρ, w) on which the strict inequality holds by more than the error of
/// the quadrature.
CheckFinding check_claim1(const CheckEffort& effort, const MomentRule& moments = exact_moments);
CheckFinding check_claim2(const CheckEffort& effort, const MomentRule& moments = exact_moments);
/// `radius` 0 draws ρ < 1; infinity takes whole Gaussians, for which the claim is not made.
CheckFinding check_claim3(const CheckEffort& effort, double radius = 0,
                          const MomentRule& moments = exact_moments);

}  // namespace moelab
