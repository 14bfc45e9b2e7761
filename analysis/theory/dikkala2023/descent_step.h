#pragma once

/// The proof of Theorem 1 (formally Theorem 3) of Dikkala et al. 2023 where W₂ ≠ 0. With x₂ ~ N(0, I),
/// (1 − ε) W₂ x₂ + z is distributed as W₂ x₂ for z = √(1 − (1 − ε)²) W₂ ζ, ζ ~ N(0, I), so that the expected
/// loss E ℓ(W, b) is the mean over z of E ℓ(W', b + z) with W₂' = (1 − ε) W₂, and the best z does no worse:
///   L(W, b, U) − L(W', b + z*, U) ≥ λ₁ (1 − (1 − ε)²) ‖W₂‖².
/// To first order in ε, shrinking alone changes L by −ε (⟨W₂, H W₂⟩ + 2 λ₁ ‖W₂‖²), H = ∂²E ℓ/∂b², which is a
/// decrease where H ⪰ 0. Where (H + 2 λ₁) W₂ = 0 it is none, and the shift of b descends: along the columns
/// of W₂ the curvature in b is −2 λ₁, so that the stationary point is a saddle.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023/subspace_problem.h"

namespace moelab {

/// The decrease over λ₁ (1 − (1 − ε)²) ‖W₂‖²: the smallest over random points, saddles and ε. z* is the best
/// of the nodes of a rule for ζ, no worse than their mean. Without `shift`, z* = 0.
CheckFinding check_descent_step(const CheckEffort& effort, bool shift = true);

/// dL/dε at ε = 0 of shrinking W₂ alone, from H (E, E) and W₂ (E, d − d').
using ShrinkingSlope =
    std::function<double(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty)>;
/// −⟨W₂, H W₂⟩ − 2 λ₁ ‖W₂‖².
double shrinking_slope(const Matrix& bias_hessian, const Matrix& irrelevant, double penalty);

/// The largest difference from the slope of L, relative to ‖H‖ ‖W₂‖², over random points.
CheckFinding check_shrinking_slope(const CheckEffort& effort, const ShrinkingSlope& slope = shrinking_slope);

/// The curvature in b along the columns of W₂ at a stationary point with W₂ ≠ 0.
using SaddleCurvature = std::function<double(double penalty)>;
/// −2 λ₁.
double saddle_curvature(double penalty);

/// The measured curvature that differs most from it.
CheckFinding check_saddle_curvature(const CheckEffort& effort,
                                    const SaddleCurvature& curvature = saddle_curvature);

}  // namespace moelab
