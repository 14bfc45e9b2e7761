#pragma once

/// Checks of Nguyen et al. 2025 (graphs of tokens: similarity-aware and attention-aware mixtures). The
/// routing is in closed form and double, for single sequences, and independent of the routers that train.
/// Many checks take a rule, so that tests can pass a wrong one.

#include <functional>
#include <vector>

#include "analysis/theory/check.h"

namespace moelab {

// The models in closed form

/// E experts behind a linear router: r(u) = softmax(W u), g_e(u) = B_e u + c_e.
struct TokenMixture {
  Matrix router;  ///< W (E, d)
  Matrix slopes;  ///< the B_e (o, d), one below the other: (E · o, d)
  Matrix values;  ///< c_e (E, o)

  Eigen::Index experts() const { return router.rows(); }
  Eigen::Index outputs() const { return values.cols(); }
  /// r of each row of `tokens` (n, d), (n, E).
  Matrix routing(const Matrix& tokens) const;
  /// g_e(u) for all e, (E, o).
  Matrix answers(const Vector& token) const;
  /// MoE(u) = Σ_e r_e(u) g_e(u), (o).
  Vector output(const Vector& token) const;
};

/// Entries of W and c are N(0, 1), entries of B are N(0, 1/d).
TokenMixture draw_mixture(Engine& engine, int experts, int dim, int outputs);

/// log S (s, s) for S = row-softmax(U W_s Uᵀ / τ) of tokens U (s, d), W_s = I.
Matrix log_similarity(const Matrix& tokens, double temperature);

/// H heads over a sequence X (s, d): A_h = row-softmax(X Q_hᵀ K_h Xᵀ / √q), U = MHA(X) = (1/H) Σ_h A_h X W_h.
/// Row i of X W_h is W_hᵀ x_i, the centre that matches this U.
struct AttentionHeads {
  std::vector<Matrix> query, key;  ///< Q_h, K_h (q, d)
  std::vector<Matrix> value;       ///< W_h (d, d)

  int heads() const { return static_cast<int>(value.size()); }
  Matrix log_attention(const Matrix& x, int head) const;  ///< log A_h (s, s)
  Matrix centres(const Matrix& x, int head) const;        ///< X W_h (s, d)
  Matrix output(const Matrix& x) const;                   ///< MHA(X) (s, d)
};

/// Entries are N(0, 1/d), so that queries, keys and centres of standard normal tokens are of order one.
AttentionHeads draw_heads(Engine& engine, int heads, int dim, int query_dim);

/// The head of lowest mean row entropy (Eq. 14).
int decided_head(const AttentionHeads& heads, const Matrix& x);

// Eq. 14 puts H^p[i, h*] = 1 for this head h*. But h* depends on X alone, and the model's prior of heads does
// not depend on X. So the mean of the true H^p[i, h*] over U is the prior, 1/H.

/// Draws sequences from the attention-aware model. Measures the mean of H^p[i, h*] − `claimed` in standard
/// errors, the largest over problems. Predicted: 0.
CheckFinding check_single_head(const CheckEffort& effort, double claimed);

// The four generative models against their samplers: the mean of a model's output (Eqs. 4 and 7, appendix C)
// and the posterior of Lemma 1.
//
// The paper writes MHA(X) = (1/H) Σ_h A_h X W_h for tokens as rows. It draws u_i from N(W_h x_z, σ² I) and
// takes MHA(X)_i for the mean. Both hold together only for symmetric W_h: the centre has to be W_hᵀ x_z.

/// E[o | u] of the plain model, (o).
using PlainEstimate = std::function<Vector(const TokenMixture& mixture, const Vector& token)>;
Vector mixture_output(const TokenMixture& mixture, const Vector& token);  ///< MoE(u)

/// Measures the largest deviation of a mean of o from the estimate, in standard errors.
CheckFinding check_plain_mean(const CheckEffort& effort, const PlainEstimate& estimate = mixture_output);

/// P(e_i = e | U) of SAM, (s, E), from S (s, s) and r (s, E).
using MixedRouting = std::function<Matrix(const Matrix& similarity, const Matrix& routing)>;
Matrix routing_of_similar(const Matrix& similarity, const Matrix& routing);  ///< S r (Eq. 6)

/// The same for SAM (Definition 1): shares of experts, and o against Σ_e p_ie g_e(u_i).
CheckFinding check_similarity_aware_mean(const CheckEffort& effort,
                                         const MixedRouting& mixed = routing_of_similar);

/// The same for u_i of MAM (Definition 3) against MHA(X), with centres W_h x_z or, `transposed`, W_hᵀ x_z.
CheckFinding check_attention_mean(const CheckEffort& effort, bool transposed);

/// Lemma 1 for the tokens of a sequence, given X and U.
struct HeadPosterior {
  std::vector<Matrix> log_positions;  ///< log P(z_i = j | h_i = h, u_i, X), A^p_h, (s, s) for each h
  Matrix heads;                       ///< P(h_i = h | u_i, X), H^p (s, H)

  /// P(e_i = e | U, X) = Σ_h Σ_j H^p[i, h] A^p_h[i, j] r_e(u_j), (s, E).
  Matrix experts(const Matrix& routing) const;
};

/// A^p_h[i, j] ∝ A_h[i, j] N(u_i; W_hᵀ x_j, σ² I), and H^p[i, h] ∝ its sum over j, under a uniform prior of
/// heads.
HeadPosterior head_posterior(const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma);
using PosteriorRule =
    std::function<HeadPosterior(const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma)>;

/// Tests the conditional probabilities of h_i, z_i and e_i given U, on draws (h, z, U, e) of A2MM
/// (Definition 4). An indicator minus its probability, times 1 or an entry of u_i, has mean zero if the
/// probability is right. Linear functions of u_i show no more. Measures the largest mean in standard errors.
CheckFinding check_posterior(const CheckEffort& effort, const PosteriorRule& rule = head_posterior);

// Lemma 1 where densities underflow: σ = 1e-3 and centres at a distance of 1e3, so that log N(u; c, σ² I) is
// near −5e11.

/// log of A_j N(u; c_j, σ² I) over its sum, (m), from log A (m) and centres (m, d).
using PositionPosterior =
    std::function<Vector(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma)>;
Vector log_space_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma);
/// Products of densities, as the lemma prints them.
Vector product_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma);

/// Measures the share of rows that are probabilities: finite, with sum 1.
CheckFinding check_proper(const CheckEffort& effort, const PositionPosterior& rule);

/// Measures the largest difference from sums of squares in long double, for centres within 1e-9 of one
/// another, so that all of them keep some mass.
CheckFinding check_precise(const CheckEffort& effort, const PositionPosterior& rule = log_space_posterior);

// Appendix B.3: Renormalize(TopK⁰(softmax γ)) = softmax(TopK^∞ γ) if the K-th largest score is above the
// next.

/// Gates (E) from scores γ (E) and K.
using GateRule = std::function<Vector(const Vector& scores, int selected)>;
Vector renormalised_gates(const Vector& scores, int selected);  ///< K largest of softmax γ over their sum
Vector masked_gates(const Vector& scores, int selected);  ///< softmax of γ, all but the K largest −∞

/// Measures the largest difference between the two over random scores, E and K.
CheckFinding check_topk(const CheckEffort& effort, const GateRule& left = renormalised_gates,
                        const GateRule& right = masked_gates);

// Whether the experts of two tokens depend on each other in the four models (sections 2 and 3): mutual
// informations of small instances, exact except for rounding.
//
// Tokens take values in a finite set v_1 … v_m, u_i = v with probability ∝ exp(−‖v − W_hᵀ x_z‖²/2σ²) given
// head h and position z, so that sums replace integrals. Given the tokens U, two experts are independent in
// all four models: each is drawn for its token separately. Without U, they are dependent if one token's
// routing reads other tokens.

/// Plain MoE (Eq. 3), similarity-aware (Definition 1), mixture of attention and MoE (Definition 3), and its
/// attention-aware form (Definition 4).
enum class TokenModel { plain, similarity_aware, attention, attention_aware };

/// A small world: s tokens X (s, d), heads, experts, and the values that a token may take.
struct TokenWorld {
  TokenMixture mixture;
  AttentionHeads heads;
  Matrix x;       ///< (s, d)
  Matrix values;  ///< (m, d)
  double sigma = 1;

  /// P(u_i = v_a, h, z) for token i, (H · s, m): row h s + z.
  Matrix joint_of_token(Eigen::Index i) const;
};
TokenWorld draw_world(Engine& engine);

/// P(e_1 = a, e_2 = b | U) of the first two tokens (E, E), by a sum over the sources (and heads) of all
/// tokens of the model's joint law. `tokens` gives U by places in `values` (s). With `one_source` all tokens
/// of the sequence take the routing of one source, another model, in which experts depend on each other.
Matrix summed_pair(const TokenWorld& world, TokenModel model, const std::vector<int>& tokens,
                   bool one_source = false);

/// The same as a product of the laws of both experts, which is what independence claims.
Matrix pair_given_tokens(const TokenWorld& world, TokenModel model, const std::vector<int>& tokens);

/// P(e_1 = a, e_2 = b), where U has independent tokens of the world's law given X. With `other`, U has the
/// law of one of the two worlds, each with probability 1/2. `world` has the other parts.
Matrix pair_without_tokens(const TokenWorld& world, TokenModel model, const TokenWorld* other = nullptr);

/// I(a; b) = Σ P_ab ln(P_ab / (P_a P_b)) in nats.
double mutual_information(const Matrix& joint);

/// Measures the largest I(e_1; e_2 | U = u) over models, instances and u, from summed_pair().
CheckFinding check_independent_given_tokens(const CheckEffort& effort, bool one_source = false);
/// The same for one model and the claim that it is above 0.
CheckFinding check_dependent_given_tokens(const CheckEffort& effort, TokenModel model);
/// Measures the largest I(e_1; e_2) over instances with independent tokens.
CheckFinding check_independent_without_tokens(const CheckEffort& effort, TokenModel model);
/// Measures the least I(e_1; e_2) over instances with independent tokens, beyond the part that rounding can
/// give. With tokens of two laws, which may be nearly the same, it measures the largest.
CheckFinding check_dependent_without_tokens(const CheckEffort& effort, TokenModel model, bool two_laws);

// Eq. 11, the point estimate MoE(E[u_i | X]) for E[MoE(u_i) | X], with u_i of MAM. u_i is a mixture of H s
// Gaussians of variance σ² around the centres W_hᵀ x_j. Its noise adds
// (σ²/2) Σ_hj (A_h[i, j]/H) ΔMoE(W_hᵀ x_j) + O(σ⁴) to E[MoE(u_i) | X]. The spread of the centres does not
// depend on σ: it leaves a gap that does not vanish with σ.

/// Σ_k ∂²MoE/∂u_k², (o), by central differences. The relative error is about 1e-6.
Vector output_laplacian(const TokenMixture& mixture, const Vector& token);
using LaplacianRule = std::function<Vector(const TokenMixture& mixture, const Vector& token)>;

/// Compares what the noise adds to E[MoE(u_i) | X] at σ = 0.01, divided by σ²/2, with the Laplacian at the
/// centres. Measures the largest deviation in standard errors.
CheckFinding check_noise_gap(const CheckEffort& effort, const LaplacianRule& laplacian = output_laplacian);

/// Measures ‖E[MoE(u_i) | X] − MoE(MHA(X)_i)‖ / ‖E[MoE(u_i) | X]‖ at σ = 0, both root mean squares over
/// tokens and problems. The details give the gap at σ = 0.1, 1, 2 and √d.
CheckFinding check_point_estimate(const CheckEffort& effort);

// Proposition 1: with weights s_i over J_i = {j : H(r_j) ≤ H(r_i)}, renormalised, and p_i = Σ_{j ∈ J_i} s(i,
// j) r_j,
//   H(p_i) ≤ Σ_j s(i, j) H(r_j) + H(s_i),
// and H(p_i) ≤ H(r_i) as τ → 0 or σ → 0. The first is always true. The second needs J_i: the routers mix over
// all tokens, and the one that is left in the limit may be less decided than token i. The τ and σ of the
// paper are near neither limit.

/// The weights of one token: softmax of the row `log_scores` (s) over J_i, zero elsewhere, (s).
struct DecidedWeights {
  Vector weights;
  double log_odds;  ///< of the largest against the second; ∞ if J_i has one member
};
DecidedWeights decided_weights(const Vector& log_scores, const Vector& entropies, Eigen::Index token);

/// Whose weights: similar tokens (τ), or the posterior of the most decided head at U = MHA(X) (σ).
enum class MixingKind { similarity, attention };

/// An upper bound of H(p_i) from the weights (s) and the entropies of r (s).
using EntropyBound = std::function<double(const Vector& weights, const Vector& entropies)>;
double proposition1_bound(const Vector& weights, const Vector& entropies);

/// Measures the share of tokens of random sequences for which the bound holds, at τ or σ = 0.1, 1, 2 and √d.
CheckFinding check_entropy_bound(const CheckEffort& effort, MixingKind kind,
                                 const EntropyBound& bound = proposition1_bound);

/// Measures the largest H(p_i) − H(r_i) at τ = 1e-10 or σ = 1e-6, mixing over J_i or over all tokens. The
/// details give it at larger τ or σ.
CheckFinding check_entropy_limit(const CheckEffort& effort, MixingKind kind, bool all_tokens);

/// Measures the share of tokens, one of each sequence, with H(p_i) ≤ H(r_i) at a finite τ or σ.
CheckFinding check_entropy_at(const CheckEffort& effort, MixingKind kind, double parameter);

// What mixing does to the entropy of routing with the same weights (section 4). Entropy is concave:
// H(Σ_j s_ij r_j) ≥ Σ_j s_ij H(r_j). So a doubly stochastic S never lowers the mean over tokens. A softmax S
// may, and rarely does. The paper reports lower entropies of models that were trained separately.
//
// Appendix E.6: S → I as τ → 0. This holds for token i if u_iᵀu_i > u_iᵀu_j for all j ≠ i, which equal
// lengths guarantee.

/// Measures the share of tokens with H(p_i) ≥ Σ_j s_ij H(r_j), similar tokens mixed at τ = 0.1, 1, 2, √d.
CheckFinding check_concavity(const CheckEffort& effort);

/// A random mixing matrix (s, s) from logarithms of softmax weights.
using MixingRule = std::function<Matrix(Engine& engine, const Matrix& log_scores)>;
Matrix mean_of_permutations(Engine& engine, const Matrix& log_scores);  ///< convex, hence doubly stochastic
Matrix softmax_mixing(Engine& engine, const Matrix& log_scores);

/// Measures the share of sequences whose mean entropy mixing does not lower. Hypothesis: columns of S sum
/// to 1.
CheckFinding check_doubly_stochastic(const CheckEffort& effort,
                                     const MixingRule& rule = mean_of_permutations);

/// Measures the share of sequences whose mean entropy is lower after mixing with S at τ = 1.
CheckFinding check_lower_entropy(const CheckEffort& effort);

/// Measures the largest entry of S − I at τ = 1e-10, for tokens N(0, I), scaled to one length or not.
CheckFinding check_identity_limit(const CheckEffort& effort, bool equal_lengths);

/// Measures the share of tokens for which S_ii → 1 as τ → 0 if and only if u_iᵀu_i > u_iᵀu_j for all j ≠ i.
CheckFinding check_identity_criterion(const CheckEffort& effort);

}  // namespace moelab
