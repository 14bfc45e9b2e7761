#pragma once

/// Proposition 2 of Nielsen et al. 2025 where it is used: on the second moment of inputs of several clusters,
/// each scaled by the M of its own cluster,
///   κ((1/k) Σ_c M_c (Σ_c + μ_c μ_cᵀ) M_c) ≤ κ((1/k) Σ_c (Σ_c + μ_c μ_cᵀ)),
/// which the proposition says of one centred cluster.

#include "analysis/theory/acmoe2025/instances.h"
#include "analysis/theory/check.h"

namespace moelab {

/// 16 clusters of the law of scenarios/acmoe2025: d = 24, means N(0, mean_std² I), deviations .15 on 6 random
/// features and 1.5 on the others. The share of draws on which the inequality holds, with the median and the
/// largest quotient of its sides; M_c = diag(1/σ_c), of mean 1.
CheckFinding check_pooled_moment(const CheckEffort& effort, double mean_std);

}  // namespace moelab
