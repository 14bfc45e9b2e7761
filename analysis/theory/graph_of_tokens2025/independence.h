#pragma once

/// Whether the experts of two tokens depend on each other in the four models of Nguyen et al. 2025 (section 2
/// and 3): mutual informations of small instances, exact but for rounding.
///
/// Tokens take values in a finite set v_1 … v_m, u_i = v with probability ∝ exp(−‖v − W_h^T x_z‖²/2σ²) given
/// head h and position z, so that sums replace integrals. Given the tokens U, two experts are independent in
/// all four models: what each is drawn from is drawn for each token by itself. Without U, they are dependent
/// where one token's routing reads other tokens.

#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025/token_graph.h"

namespace moelab {

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

}  // namespace moelab
