#pragma once

/// A language whose floor is known: k latent domains, each a Markov chain of tokens.

#include <optional>

#include "sim/base/options.h"

namespace moelab {

/// The rows of the chains.
struct TransitionOptions {
  enum class Base { uniform, zipf };
  double concentration = 0.15;
  Base base = Base::uniform;
  void bind(Fields& fields);
};

/// Facts of the domains: P keys, the last tokens of the vocabulary and the same in all domains, each with a
/// value for every domain, drawn uniformly from the other tokens of the domain. See add_facts() in
/// sim/data/language_law.h for r.
struct FactOptions {
  int pairs = 0;    ///< P
  double rate = 0;  ///< r
  void bind(Fields& fields);
};

/// Sequences of s + 1 ids from the law of sim/data/language_law.h: inputs are the first s, targets the next
/// token of each, (n, s); the label of a token is the domain that drew it, (n, s). Rows of T_c and of
/// `start`:
///   T_c[u, ·] ~ Dirichlet(concentration · m · base),   start(c) = base,
/// on the m tokens of domain c: all V of them (`shared`), or V / k of its own (`own`, consecutive ids), V
/// less P where there are facts, which are added to these rows. base is uniform, or ∝ 1 / (1 + place among
/// the domain's tokens) (`zipf`).
struct SyntheticLanguageOptions {
  enum class Tokens { shared, own };
  int domains = 0;       ///< k
  int first_domain = 0;  ///< among all that the seeds know, of which k are drawn
  int vocabulary = 0;    ///< V
  int order = 1;
  double switch_rate = 0;  ///< h
  int tokens = 0;          ///< s
  TransitionOptions transitions = {};
  Tokens tokens_of_domains = Tokens::shared;
  std::optional<FactOptions> facts = {};

  /// Tokens that are no keys.
  int chained() const { return vocabulary - (facts ? facts->pairs : 0); }
  void bind(Fields& fields);
};

}  // namespace moelab
