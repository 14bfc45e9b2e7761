#pragma once

/// What predictors of the next token that know the law of the data lose, in nats a token.

namespace moelab {

/// Means of −log p(next token | …) over the tokens of samples.
struct LanguageLosses {
  double bayes = 0;          ///< given all tokens before: the floor of every model
  double oracle_domain = 0;  ///< given also the domains that drew them
  double bigram = 0;         ///< given the last token alone
  double unigram = 0;        ///< given nothing
};

}  // namespace moelab
