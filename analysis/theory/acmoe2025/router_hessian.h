#pragma once

/// The proof of Proposition 2 of Nielsen et al. 2025 (Eq. 30-32) on the Hessian of the loss in one row of the
/// router: H^(i) = B_i E[(Mh)(Mh)ᵀ] with B_i "some constant that depends only on i". B_i depends on the
/// sample and may be negative: H^(i) = E[B_i(h)(Mh)(Mh)ᵀ], which may be indefinite, and whose condition
/// number is not that of MΣM.

#include <functional>

#include "analysis/geometry/router_hessian.h"
#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

/// ∂²L/∂w_0² (d, d) of the first row.
using RowHessian = std::function<Matrix(const MixtureSamples& batch)>;

/// The multiple of E[zzᵀ], z = Mh, that is nearest to the exact Hessian: the best that a constant B_0 can do.
Matrix constant_curvature(const MixtureSamples& batch);
/// By the formula of analysis/geometry/router_hessian.h.
Matrix exact_curvature(const MixtureSamples& batch);

/// The largest relative difference in the Frobenius norm from central differences of the gradient in the
/// first row, over random mixtures of four linear experts, plain and adaptive features.
CheckFinding check_router_hessian(const CheckEffort& effort, const RowHessian& hessian);

}  // namespace moelab
