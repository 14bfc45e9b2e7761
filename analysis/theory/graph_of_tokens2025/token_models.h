#pragma once

/// The four generative models of Nguyen et al. 2025 as samplers.

#include "analysis/theory/graph_of_tokens2025/token_graph.h"

namespace moelab {

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

}  // namespace moelab
