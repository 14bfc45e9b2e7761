#pragma once

/// The routing of Nguyen et al. 2025 in closed form, for statements about single sequences: small, in double,
/// and apart from the routers that train.

#include <functional>
#include <utility>
#include <vector>

#include "analysis/theory/check.h"
#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

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

/// Entries of W, B and c are N(0, 1), but for B, N(0, 1/d).
TokenMixture draw_mixture(Engine& engine, int experts, int dim, int outputs);

/// S = row-softmax(U W_s U^T / τ) of tokens U (s, d), W_s = I, as logarithms (s, s).
Matrix log_similarity(const Matrix& tokens, double temperature);

/// H heads over a sequence X (s, d): A_h = row-softmax(X Q_h^T K_h X^T / √q), U = MHA(X) = (1/H) Σ_h A_h X
/// W_h. Row i of X W_h is W_h^T x_i: the centre that matches this U.
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

/// log N(u; c_j, σ² I) − log N(u; c*, σ² I) for each row c_j of `centres` (m, d), c* the nearest to u. The
/// squares are subtracted as −(c_j − c*)^T (c_j + c* − 2u) / (2σ²): equal distances cancel however large they
/// are against σ.
Vector log_likelihood_ratios(const Vector& token, const Matrix& centres, double sigma);

/// Lemma 1 for the tokens of a sequence, given X and U.
struct HeadPosterior {
  std::vector<Matrix> log_positions;  ///< log P(z_i = j | h_i = h, u_i, X), A^p_h, (s, s) for each h
  Matrix heads;                       ///< P(h_i = h | u_i, X), H^p (s, H)

  /// P(e_i = e | U, X) = Σ_h Σ_j H^p[i, h] A^p_h[i, j] r_e(u_j), (s, E).
  Matrix experts(const Matrix& routing) const;
};

/// A^p_h[i, j] ∝ A_h[i, j] N(u_i; W_h^T x_j, σ² I), H^p[i, h] ∝ Σ_j of the same, under a uniform prior of
/// heads.
HeadPosterior head_posterior(const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma);

/// The head of lowest mean row entropy (Eq. 14).
int decided_head(const AttentionHeads& heads, const Matrix& x);

/// Proposition 1's weights of one token over J_i = {j : H(r_j) ≤ H(r_i)}: softmax of the row `log_scores` (s)
/// over J_i, zero elsewhere, (s).
struct DecidedWeights {
  Vector weights;
  double log_odds;  ///< of the largest against the second; ∞ where J_i has one member
};
DecidedWeights decided_weights(const Vector& log_scores, const Vector& entropies, Eigen::Index token);

// The four generative models of Nguyen et al. 2025 as samplers.

/// The latent variables and the output of one token.
struct TokenDraw {
  int head = 0;    ///< h_i
  int source = 0;  ///< s_i or z_i: the token whose routing or value is taken
  int expert = 0;  ///< e_i
  Vector input;    ///< u_i (d)
  Vector output;   ///< o_i (o)
};

/// An index with the probabilities of a row, (n).
int draw_category(Engine& engine, const Eigen::Ref<const Eigen::RowVectorXd>& probabilities);

/// Plain MoE (Eq. 3): e ~ Cat(r(u)), o ~ N(g_e(u), I).
TokenDraw draw_plain(const TokenMixture& mixture, const Vector& token, Engine& engine);

/// SAM (Definition 1) at token i of U (s, d): s_i ~ Cat(S_i), e ~ Cat(r(u_{s_i})), o ~ N(g_e(u_i), I).
TokenDraw draw_similarity_aware(const TokenMixture& mixture, const Matrix& tokens, const Matrix& similarity,
                                Eigen::Index i, Engine& engine);

/// The models with attention, for one X: what does not change from draw to draw is computed once.
class AttentionModel {
 public:
  AttentionModel(const TokenMixture& mixture, const AttentionHeads& heads, const Matrix& x, double sigma);

  /// MAM (Definition 3) at token i: h ~ U{1, …, H}, z ~ Cat(A_h[i, ·]), u ~ N(W_h^T x_z, σ² I), e ~
  /// Cat(r(u)), o ~ N(g_e(u), I).
  TokenDraw draw_plain_routing(Eigen::Index i, Engine& engine) const;

  /// A2MM (Definition 4) of the whole sequence: the u_i as in MAM, then e_i ~ Cat(r(u_{z_i})), o_i ~
  /// N(g_{e_i}(u_i), I).
  std::vector<TokenDraw> draw_attention_aware(Engine& engine) const;

 private:
  TokenDraw draw_input(Eigen::Index i, Engine& engine) const;

  const TokenMixture& mixture_;
  double sigma_;
  std::vector<Matrix> attention_;  ///< A_h (s, s)
  std::vector<Matrix> centres_;    ///< X W_h (s, d)
};

// The generative models of Nguyen et al. 2025 against their samplers: what a model's output is on average
// (Eqs. 4 and 7, appendix C) and the posterior of Lemma 1.
//
// The source writes MHA(X) = (1/H) Σ_h A_h X W_h for tokens as rows, and N(W_h x_z, σ² I) for the u_i of
// which it is to be the mean. Both together hold for symmetric W_h alone: the centre has to be W_h^T x_z.

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

// Nguyen et al. 2025, appendix B.3: Renormalize(TopK⁰(softmax γ)) = softmax(TopK^∞ γ), exactly, where the
// K-th largest score is above the next.

/// Gates (E) from scores γ (E) and K.
using GateRule = std::function<Vector(const Vector& scores, int selected)>;

Vector renormalised_gates(const Vector& scores, int selected);  ///< K largest of softmax γ over their sum
Vector masked_gates(const Vector& scores, int selected);  ///< softmax of γ, all but the K largest −∞

/// The largest difference of the two over random scores, E and K.
CheckFinding check_topk(const CheckEffort& effort, const GateRule& left = renormalised_gates,
                        const GateRule& right = masked_gates);

// What mixing alone does to the entropy of routing (Nguyen et al. 2025, section 4), the weights
// being the same. Entropy is concave: H(Σ_j s_ij r_j) ≥ Σ_j s_ij H(r_j), so that a doubly stochastic S never
// lowers the mean over tokens. A softmax S may, and rarely does. The lower entropies that the source reports
// are those of models that were trained apart.
//
// And when S → I as τ → 0 (appendix E.6): for token i if u_i^T u_i > u_i^T u_j for all j ≠ i, which equal
// lengths guarantee.

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

// The point estimate of Nguyen et al. 2025, Eq. 11: MoE(E[u_i | X]) for E[MoE(u_i) | X], u_i of MAM.
//
// u_i is a mixture of H s Gaussians of variance σ² around the centres W_h^T x_j. Its noise alone adds
// (σ²/2) Σ_hj (A_h[i, j]/H) ΔMoE(W_h^T x_j) + O(σ⁴) to E[MoE(u_i) | X]; the spread of the centres, which has
// no σ, leaves a gap that does not vanish with σ.

/// Σ_k ∂²MoE/∂u_k², (o), by central differences; relative error about 1e-6.
Vector output_laplacian(const TokenMixture& mixture, const Vector& token);
using LaplacianRule = std::function<Vector(const TokenMixture& mixture, const Vector& token)>;

/// What the noise adds to E[MoE(u_i) | X] at σ = 0.01, divided by σ²/2, against the Laplacian at the centres:
/// largest deviation in standard errors.
CheckFinding check_noise_gap(const CheckEffort& effort, const LaplacianRule& laplacian = output_laplacian);

/// The gap ‖E[MoE(u_i) | X] − MoE(MHA(X)_i)‖ at σ = 0, relative to ‖E[MoE(u_i) | X]‖, both root mean squares
/// over tokens and problems; the gap at σ = 0.1, 1, 2 and √d beside it.
CheckFinding check_point_estimate(const CheckEffort& effort);

// Whether the experts of two tokens depend on each other in the four models of Nguyen et al. 2025 (section 2
// and 3): mutual informations of small instances, exact but for rounding.
//
// Tokens take values in a finite set v_1 … v_m, u_i = v with probability ∝ exp(−‖v − W_h^T x_z‖²/2σ²) given
// head h and position z, so that sums replace integrals. Given the tokens U, two experts are independent in
// all four models: what each is drawn from is drawn for each token by itself. Without U, they are dependent
// where one token's routing reads other tokens.

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

/// P(e_1 = a, e_2 = b | U) of the first two tokens (E, E), U given by places in `values` (s).
Matrix pair_given_tokens(const TokenWorld& world, TokenModel model, const std::vector<int>& tokens);

/// P(e_1 = a, e_2 = b), U with independent tokens of the world's law given X; with `other`, U is of one of
/// the two worlds' laws, each with probability 1/2 (their other parts are the first one's).
Matrix pair_without_tokens(const TokenWorld& world, TokenModel model, const TokenWorld* other = nullptr);

/// I(a; b) = Σ P_ab ln(P_ab / (P_a P_b)) in nats.
double mutual_information(const Matrix& joint);

/// I(e_1; e_2 | U = u), the largest over models, instances and u.
CheckFinding check_independent_given_tokens(const CheckEffort& effort);
/// The same of one model as a claim that it is above 0: the largest over instances and u.
CheckFinding check_dependent_given_tokens(const CheckEffort& effort, TokenModel model);
/// I(e_1; e_2) with independent tokens: the largest over instances.
CheckFinding check_independent_without_tokens(const CheckEffort& effort, TokenModel model);
/// The least over instances with independent tokens; with those of two laws, which may be nearly the same,
/// the largest.
CheckFinding check_dependent_without_tokens(const CheckEffort& effort, TokenModel model, bool two_laws);

// The posterior of Lemma 1 of Nguyen et al. 2025 where densities underflow: σ = 1e-3 and centres at a
// distance of 1e3, so that log N(u; c, σ² I) is near −5e11.

/// log of A_j N(u; c_j, σ² I) over its sum, (m), from log A (m) and centres (m, d).
using PositionPosterior =
    std::function<Vector(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma)>;
Vector log_space_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma);

/// Products of densities as the lemma prints them.
Vector product_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma);

/// The share of rows that are probabilities: finite, with sum 1.
CheckFinding check_proper(const CheckEffort& effort, const PositionPosterior& rule);

/// Centres within 1e-9 of one another, so that all of them keep some mass: the largest difference to sums of
/// squares in long double.
CheckFinding check_precise(const CheckEffort& effort, const PositionPosterior& rule = log_space_posterior);

// Proposition 1 of Nguyen et al. 2025. With weights s_i over J_i = {j : H(r_j) ≤ H(r_i)}, renormalised, and
// p_i = Σ_{j ∈ J_i} s(i, j) r_j,
//   H(p_i) ≤ Σ_j s(i, j) H(r_j) + H(s_i),
// and H(p_i) ≤ H(r_i) as τ → 0 or σ → 0. The first is always true. The second needs J_i: the routers mix
// over all tokens, and the one that is left in the limit may be less decided than token i. At the τ and σ
// that the source uses neither limit is near.

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
