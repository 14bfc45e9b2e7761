#pragma once

/// A synthetic language with a known least loss: k latent domains, each a Markov chain of tokens.

#include <optional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"

namespace moelab {

/// The rows of the chains.
struct TransitionOptions {
  enum class Base { uniform, zipf };
  double concentration = 0.15;
  Base base = Base::uniform;
  void bind(Fields& fields);
};

/// Facts of the domains. The last P tokens of the vocabulary are keys in all domains. Each key has a value in
/// every domain, drawn uniformly from the other tokens of the domain. See add_facts() for r.
struct FactOptions {
  int pairs = 0;    ///< P
  double rate = 0;  ///< r
  void bind(Fields& fields);
};

/// Sequences of s + 1 ids from a LanguageLaw. Inputs are the first s ids, and targets the next token of each,
/// (n, s). The label of a token is the domain that drew it, (n, s). Rows of T_c and of `start`:
///   T_c[u, ·] ~ Dirichlet(concentration · m · base),   start(c) = base,
/// on the m tokens of domain c: all V tokens (`shared`), or V / k consecutive ids of each domain (`own`).
/// With facts, V − P replaces V, and the facts are added to these rows. base is uniform, or ∝ 1 / (1 + place
/// among the domain's tokens) (`zipf`).
struct SyntheticLanguageOptions {
  enum class Tokens { shared, own };
  int domains = 0;       ///< k
  int first_domain = 0;  ///< the first of the k domains, among all domains of the seeds
  int vocabulary = 0;    ///< V
  int order = 1;
  double switch_rate = 0;  ///< h
  int tokens = 0;          ///< s
  TransitionOptions transitions = {};
  Tokens tokens_of_domains = Tokens::shared;
  std::optional<FactOptions> facts = {};

  /// Tokens that are not keys.
  int chained() const { return vocabulary - (facts ? facts->pairs : 0); }
  void bind(Fields& fields);
};

// Losses of next-token predictors that know the law, in nats per token: means of −log p(next token | …).
struct LanguageLosses {
  double bayes = 0;          ///< given all tokens before: the least loss of any model
  double oracle_domain = 0;  ///< given also their domains
  double bigram = 0;         ///< given only the last token
  double unigram = 0;        ///< given nothing
};

// The law of a language

/// A sequence starts in a domain c_0 ~ U{0, …, k − 1}. Before each further token the domain changes with
/// probability h, to each of the others with equal probability. The first `order` tokens come from start(c),
/// the next ones from the row of transitions[c] for the last `order` tokens:
///   P(x_t = v | c_t = c, x_{t−1} = u) = T_c[u, v],   of order 2 T_c[u' V + u, v] with x_{t−2} = u'.
/// The last `keys` tokens are the keys of facts. The rows after them apply even if fewer than `order` tokens
/// came before.
struct LanguageLaw {
  int order = 1;
  double switch_rate = 0;           ///< h
  Matrix start;                     ///< (k, V), rows sum to 1
  std::vector<Matrix> transitions;  ///< of each domain, (V^order, V), rows sum to 1
  int keys = 0;                     ///< P, the last ids

  int domains() const { return static_cast<int>(start.rows()); }
  int vocabulary() const { return static_cast<int>(start.cols()); }
  /// The law of the token after ids[0 … seen − 1] in domain c, (V).
  Eigen::Ref<const Eigen::RowVectorXd> next(int domain, std::span<const double> ids) const;
  /// The same after `seen` tokens. The digits of `context` in base V are the last `order` tokens, or all if
  /// fewer.
  Eigen::Ref<const Eigen::RowVectorXd> row(int domain, int seen, Eigen::Index context) const;
  /// P(c_{t+1} | …) from P(c_t | …), (k): (1 − h) b_c + h (1 − b_c) / (k − 1).
  Vector switched(const Vector& belief) const;
};

/// Adds facts to a law whose chains do not use the last P tokens. q = V − P + p is the key of fact p, and
/// values[c][p] its value in domain c:
///   start(c)[v] ← (1 − r) start(c)[v] + (r / P) 1[v ≥ V − P],   and likewise T_c[u, ·] of u that is no key,
///   T_c[q, v] = 1[v = values[c][p]].
/// So a token that is not a value is a key with probability r, all keys equally likely. Its value in the
/// domain of that place follows with certainty. The token after a value comes from the value's row, as after
/// any other token. The result is again a chain of tokens, to which all losses below apply.
void add_facts(LanguageLaw& law, double rate, const std::vector<std::vector<int>>& values);

/// Losses on n sequences of s + 1 ids. x (n, s) are the first s ids, y (n, s) the last s, and `domains` (n ·
/// s) the domains of the tokens of x.
///   bayes: Σ_c P(c_{t+1} = c | x_0, …, x_t) T_c[x_t, y_t] with the exact posterior, by forward filtering.
///   oracle_domain: the same with P(c_{t+1} | c_t), c_t the domain of x_t.
///   bigram, unigram: E[T] given only x_t, and given nothing, for the law averaged over the s places.
LanguageLosses losses_of(const LanguageLaw& law, const Matrix& x, const Matrix& y,
                         std::span<const int> domains);

}  // namespace moelab
