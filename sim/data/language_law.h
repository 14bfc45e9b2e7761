#pragma once

/// The law of a language of several domains, each a Markov chain of tokens, and what is known of the next
/// token.

#include <span>
#include <vector>

#include "sim/base/types.h"
#include "sim/data/language_losses.h"

namespace moelab {

/// A sequence starts in a domain c_0 ~ U{0, …, k − 1}; before each further token the domain changes with
/// probability h, to any of the others alike. Its first `order` tokens come from start(c), the next ones from
/// the row of transitions[c] that the last `order` tokens name:
///   P(x_t = v | c_t = c, x_{t−1} = u) = T_c[u, v],   of order 2 T_c[u' V + u, v] with x_{t−2} = u'.
struct LanguageLaw {
  int order = 1;
  double switch_rate = 0;           ///< h
  Matrix start;                     ///< (k, V), rows sum to 1
  std::vector<Matrix> transitions;  ///< of each domain, (V^order, V), rows sum to 1

  int domains() const { return static_cast<int>(start.rows()); }
  int vocabulary() const { return static_cast<int>(start.cols()); }
  /// The law of the token after ids[0 … seen − 1] in domain c, (V).
  Eigen::Ref<const Eigen::RowVectorXd> next(int domain, std::span<const double> ids) const;
  /// P(c_{t+1} | …) from P(c_t | …), (k): (1 − h) b_c + h (1 − b_c) / (k − 1).
  Vector switched(const Vector& belief) const;
};

/// Losses on n sequences of s + 1 ids, of which x (n, s) are the first s and y (n, s) the last s, with the
/// domains (n · s) of the tokens of x.
///   bayes: Σ_c P(c_{t+1} = c | x_0, …, x_t) T_c[x_t, y_t] with the exact posterior, by forward filtering.
///   oracle_domain: the same with P(c_{t+1} | c_t), c_t the domain of x_t.
///   bigram, unigram: E[T] given x_t alone, and given nothing, of the law averaged over the s places.
LanguageLosses losses_of(const LanguageLaw& law, const Matrix& x, const Matrix& y,
                         std::span<const int> domains);

}  // namespace moelab
