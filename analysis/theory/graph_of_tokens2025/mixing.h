#pragma once

/// What mixing alone does to the entropy of routing (Nguyen et al. 2025, section 4), the weights
/// being the same. Entropy is concave: H(Σ_j s_ij r_j) ≥ Σ_j s_ij H(r_j), so that a doubly stochastic S never
/// lowers the mean over tokens. A softmax S may, and rarely does. The lower entropies that the source reports
/// are those of models that were trained apart.
///
/// And when S → I as τ → 0 (appendix E.6): for token i if u_i^T u_i > u_i^T u_j for all j ≠ i, which equal
/// lengths guarantee.

#include <functional>

#include "analysis/theory/check.h"
#include "sim/base/random.h"
#include "sim/base/types.h"

namespace moelab {

/// The share of tokens with H(p_i) ≥ Σ_j s_ij H(r_j), similar tokens mixed at τ = 0.1, 1, 2, √d.
CheckFinding check_concavity(const CheckEffort& effort);

/// A random mixing matrix (s, s), from logarithms of softmax weights.
using MixingRule = std::function<Matrix(Engine& engine, const Matrix& log_scores)>;
Matrix mean_of_permutations(Engine& engine, const Matrix& log_scores);  ///< convex, hence doubly stochastic
Matrix softmax_mixing(Engine& engine, const Matrix& log_scores);

/// The share of sequences whose mean entropy mixing does not lower. Hypothesis: columns of S sum to 1.
CheckFinding check_doubly_stochastic(const CheckEffort& effort,
                                     const MixingRule& rule = mean_of_permutations);

/// The share of sequences whose mean entropy mixing with S at τ = 1 lowers, with a binomial interval.
CheckFinding check_lower_entropy(const CheckEffort& effort);

/// The largest entry of S − I at τ = 1e-10, of tokens N(0, I), scaled to one length or not.
CheckFinding check_identity_limit(const CheckEffort& effort, bool equal_lengths);

/// The share of tokens for which S_ii → 1 as τ → 0 if and only if u_i^T u_i > u_i^T u_j for all j ≠ i.
CheckFinding check_identity_criterion(const CheckEffort& effort);

}  // namespace moelab
