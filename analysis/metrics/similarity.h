#pragma once

/// How alike the experts' outputs are (Guo et al. 2025: experts grow alike under a balance loss alone). Uses
/// no routing.

#include <span>

#include "sim/base/types.h"

namespace moelab {

/// For each row of expert outputs (n, E·o), expert after expert: the mean cosine between the outputs of two
/// different experts, over all E(E − 1) pairs; an output of zero has cosine 0 with every other. (n). Throws
/// InvalidOption when there are less than two experts or E does not divide the columns.
Vector expert_output_similarities(const Eigen::Ref<const Matrix>& outputs, int experts);

/// How differently the experts answer the task's error: for each row the variance over experts j (ddof 0) of
/// g^T x̃_j, with outputs x̃ (n, E·o) and error gradients g (n, o'), o' ≤ o columns of each expert's output
/// counting. (n). Throws InvalidOption as above, when the rows differ, or when o' > o.
Vector task_signal_variances(const Eigen::Ref<const Matrix>& outputs, int experts,
                             const Eigen::Ref<const Matrix>& gradients);

/// The same between the K experts that a row selects, `selected` (n·E), 1 or 0, and apart from its scale:
/// Σ_i Var_j(p_ij) ÷ Σ_i mean_j p_ij² ∈ [0, 1], p_ij = g_i^T x̃_ij, over rows with two selected experts or
/// more. These sums, so that blocks of rows may be added up. Throws InvalidOption as above.
struct SignalSpread {
  double variance = 0, square = 0;
};
SignalSpread selected_signal_spread(const Eigen::Ref<const Matrix>& outputs, int experts,
                                    const Eigen::Ref<const Matrix>& gradients,
                                    std::span<const unsigned char> selected);

}  // namespace moelab
