#pragma once

/// Proposition 1 of Nguyen et al. 2025. With weights s_i over J_i = {j : H(r_j) ≤ H(r_i)}, renormalised, and
/// p_i = Σ_{j ∈ J_i} s(i, j) r_j,
///   H(p_i) ≤ Σ_j s(i, j) H(r_j) + H(s_i),
/// and H(p_i) ≤ H(r_i) as τ → 0 or σ → 0. The first is always true. The second needs J_i: the routers mix
/// over all tokens, and the one that is left in the limit may be less decided than token i. At the τ and σ
/// that the source uses neither limit is near.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025/token_graph.h"

namespace moelab {

/// Whose weights: of similar tokens (τ), or of the posterior of the most decided head at U = MHA(X) (σ).
enum class MixingKind { similarity, attention };

/// A random sequence: s = 16 tokens N(0, I) of d = 8, E = 16 experts, r = softmax(W u), W ~ N(0, 1); for
/// attention 4 heads.
struct RoutedSequence {
  Matrix tokens;      ///< U (s, d)
  Matrix routing;     ///< r (s, E)
  Vector entropies;   ///< H(r_j) (s)
  Matrix log_scores;  ///< log S or log A^p (s, s)
};
RoutedSequence draw_sequence(Engine& engine, MixingKind kind, double parameter);

/// τ or σ as the source uses them: 0.1, 1, 2 and √d.
std::vector<double> source_parameters();

/// An upper bound of H(p_i) from the weights (s) and the entropies of r (s).
using EntropyBound = std::function<double(const Vector& weights, const Vector& entropies)>;
double proposition1_bound(const Vector& weights, const Vector& entropies);

/// The share of tokens of random sequences, at all of source_parameters(), that the bound holds for.
CheckFinding check_entropy_bound(const CheckEffort& effort, MixingKind kind,
                                 const EntropyBound& bound = proposition1_bound);

/// The largest H(p_i) − H(r_i) at τ = 1e-10 or σ = 1e-6, mixing over J_i or over all tokens; at larger τ or σ
/// beside it.
CheckFinding check_entropy_limit(const CheckEffort& effort, MixingKind kind, bool all_tokens);

/// The share of tokens, one of each sequence, with H(p_i) ≤ H(r_i) at a finite τ or σ.
CheckFinding check_entropy_at(const CheckEffort& effort, MixingKind kind, double parameter);

}  // namespace moelab
