#pragma once

/// The routing of Nguyen et al. 2025 in closed form, for statements about single sequences: small, in double,
/// and apart from the routers that train.

#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/types.h"

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

}  // namespace moelab
