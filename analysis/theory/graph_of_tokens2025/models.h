#pragma once

/// The generative models of Nguyen et al. 2025 against their samplers: what a model's output is on average
/// (Eqs. 4 and 7, appendix C) and the posterior of Lemma 1.
///
/// The source writes MHA(X) = (1/H) Σ_h A_h X W_h for tokens as rows, and N(W_h x_z, σ² I) for the u_i of
/// which it is to be the mean. Both together hold for symmetric W_h alone: the centre has to be W_h^T x_z.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025/token_models.h"

namespace moelab {

/// E[o | u] of the plain model, (o).
using PlainEstimate = std::function<Vector(const TokenMixture& mixture, const Vector& token)>;
Vector mixture_output(const TokenMixture& mixture, const Vector& token);  ///< MoE(u)

/// The largest deviation of a mean of o from the estimate, in standard errors.
CheckFinding check_plain_mean(const CheckEffort& effort, const PlainEstimate& estimate = mixture_output);

/// P(e_i = e | U) of SAM, (s, E), from S (s, s) and r (s, E).
using MixedRouting = std::function<Matrix(const Matrix& similarity, const Matrix& routing)>;
Matrix routing_of_similar(const Matrix& similarity, const Matrix& routing);  ///< S r (Eq. 6)

/// The same for SAM, of the shares of experts and of o against Σ_e p_ie g_e(u_i).
CheckFinding check_similarity_aware_mean(const CheckEffort& effort,
                                         const MixedRouting& mixed = routing_of_similar);

/// The same for u_i of MAM against MHA(X), with centres W_h x_z or their transposed W_h^T x_z.
CheckFinding check_attention_mean(const CheckEffort& effort, bool transposed);

/// P(h_i, z_i | u_i, X) of A2MM.
using PosteriorRule =
    std::function<HeadPosterior(const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma)>;

/// For draws (h, z, U, e) of A2MM: the indicators of h_i, z_i and e_i less their probabilities given U, times
/// 1 and each entry of u_i, are zero on average if and only if those are the conditional probabilities, as
/// far as linear functions of u_i can tell. The largest mean in standard errors.
CheckFinding check_posterior(const CheckEffort& effort, const PosteriorRule& rule = head_posterior);

}  // namespace moelab
