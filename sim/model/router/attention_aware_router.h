#pragma once

#include <optional>

#include "sim/base/error.h"
#include "sim/model/router/mixing_router.h"

namespace moelab {

/// Attention-aware routing (Nguyen et al. 2025, Lemma 1 and Definition 5): p_i = Σ_j A^p_h*[i,j] r(u_j) over
/// the tokens of the sequence, r the routing of `base` (see MixingRouter), with the posterior of the position
/// that token i attended to, A^p_h[i,j] ∝ A_h[i,j] N(u_i; W_h^T x_j, σ² I) for the block's own U = MHA(X):
/// the source writes the centre W_h x_j, which matches no U of its Eq. 9. h* is the head of lowest mean row
/// entropy of A_h over the tokens of the sequence; `posterior` sums over the heads instead, each with its
/// posterior probability H^p[i,h] under a uniform prior (Lemma 1), which is the exact rule. Likelihoods stay
/// logarithms. In a causal model, whose A_h is zero at j > i, h* of token i is that of the tokens up to i.
///
/// Differentiated are r, and the posterior in A_h, in the centres and in U, so that the attention block
/// learns through it, unless `detach`; the choice of h* is held fixed.
struct AttentionAwareRouterOptions {
  enum class Head { lowest_entropy, posterior };
  bool trainable = true;
  BaseRouterOptions base = LinearBaseOptions{};
  double sigma = 1.0;
  Head head = Head::lowest_entropy;
  std::optional<bool> detach = {};  ///< no gradient goes through the posterior; the source does not say
  void bind(Fields& fields);
};

/// What is wrong with a model of a router that looks at attention and has none.
InvalidOption no_attention_error(const std::string& router = "attention_aware");

}  // namespace moelab
