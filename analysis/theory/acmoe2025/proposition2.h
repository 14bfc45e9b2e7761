#pragma once

/// Proposition 2 of Nielsen et al. 2025: κ(MΣM) ≤ κ(Σ), which the paper takes for the condition numbers of
/// the router's Hessian with and without M (see router_hessian.h). With M = diag(Σ)^{−1/2}, as from
/// mean absolute deviations, MΣM is the correlation matrix: κ = 1 for diagonal Σ. With M = diag(Σ)^{−1}, as
/// from variances, κ(MΣM) = κ(Σ^{−1}) = κ(Σ) for diagonal Σ. For others the proof commutes M with the
/// eigenvectors of Σ, which must be near the axes for that.

#include <functional>

#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

/// The diagonal of M from a covariance.
using ScalingRule = std::function<Vector(const Matrix& covariance)>;

Vector scale_by_deviation(const Matrix& covariance);  ///< ∝ Σ_qq^{−1/2}
Vector scale_by_variance(const Matrix& covariance);   ///< ∝ Σ_qq^{−1}

using CovarianceLaw = std::function<Matrix(Engine& engine)>;

/// d = 8: log √Σ_qq ~ N(0, 1), the rest 0.
Matrix draw_diagonal_covariance(Engine& engine);
/// Q diag(λ) Qᵀ, log √λ ~ N(0, 1), Q orthonormal from the columns of I + 0.05 G, G standard normal, with
/// positive diagonal.
Matrix draw_near_axis_covariance(Engine& engine);
/// Wishart(I, 16 degrees of freedom).
Matrix draw_wishart_covariance(Engine& engine);

/// κ(MΣM) for diagonal Σ and M from standard deviations, the largest: 1.
CheckFinding check_sphering(const CheckEffort& effort, const ScalingRule& rule = scale_by_deviation);

/// |κ(MΣM)/κ(Σ) − 1| for diagonal Σ and M from variances, the largest: 0.
CheckFinding check_unchanged(const CheckEffort& effort, const ScalingRule& rule = scale_by_variance);

/// The number of instances, and of those with κ(MΣM) > κ(Σ) beyond rounding.
struct ConditioningFailures {
  int instances = 0;
  int failures = 0;
  double largest_ratio = 0;  ///< of κ(MΣM) to κ(Σ)
};
ConditioningFailures count_conditioning_failures(const CheckEffort& effort, const CovarianceLaw& law,
                                                 const ScalingRule& rule);

/// The share of Σ near the axes with κ(MΣM) ≤ κ(Σ).
CheckFinding check_near_axis(const CheckEffort& effort, const ScalingRule& rule = scale_by_deviation);

/// The frequency of Wishart Σ with κ(MΣM) > κ(Σ).
CheckFinding check_wishart(const CheckEffort& effort, const ScalingRule& rule, double predicted, double unit);

}  // namespace moelab
