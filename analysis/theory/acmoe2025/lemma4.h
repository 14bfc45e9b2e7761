#pragma once

/// Lemma 4 of Nielsen et al. 2025: where the unit eigenvectors v_i of Σ satisfy v_iᵀb_i ≥ 1 − ε for the axes
/// b_i, |λ_i − Σ_ii| ≤ ε max_j |λ_i − λ_j|. The proof ends with 1 − (v_iᵀb_i)² ≤ ε, where 1 − (1 − ε)² =
/// 2ε − ε² is what follows. Two dimensions attain that, so no smaller factor will do.

#include <functional>

#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

/// The factor of max_j |λ_i − λ_j|.
using BoundFactor = std::function<double(double epsilon)>;

double factor_as_printed(double epsilon);  ///< ε
double corrected_factor(double epsilon);   ///< 2ε − ε²

/// The largest |λ_i − Σ_ii| / (factor · max_j |λ_i − λ_j|) over random Σ of 2 to 8 dimensions, ε the
/// smallest that fits each: at most 1.
CheckFinding check_eigenvalue_bound(const CheckEffort& effort, const BoundFactor& factor);

}  // namespace moelab
