#pragma once

#include "sim/base/error.h"
#include "sim/model/router/router.h"

namespace moelab {

/// Attention-aware routing (Nguyen et al. 2025, Lemma 1 and Definition 5): p_i = Σ_j A^p_h*[i,j] r(u_j) over
/// the tokens of the sequence, r the routing of `base` (see MixingRouter), with the posterior of the position
/// that token i attended to, A^p_h[i,j] ∝ A_h[i,j] N(u_i; W_h^T x_j, σ² I) for the block's own U = MHA(X):
/// the source writes the centre W_h x_j, which matches no U of its Eq. 9. h* is the head of lowest mean row
/// entropy of A_h over the tokens of the sequence; `head` "posterior" sums over the heads instead, each with
/// its posterior probability H^p[i,h] under a uniform prior (Lemma 1), which is the exact rule. Likelihoods
/// stay logarithms.
///
/// Differentiated are r, and the posterior in A_h, in the centres and in U, so that the attention block
/// learns through it; the choice of h* is held fixed.
Kind attention_aware_router_kind();

/// What is wrong with a model of that router and no attention.
UserError no_attention_error();

template <class Real>
std::unique_ptr<Router<Real>> make_attention_aware_router(const Json& spec, const Layout& layout,
                                                          int experts);

}  // namespace moelab
