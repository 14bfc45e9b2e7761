#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// The AC router (Nielsen et al. 2025, Definition 2): γ_e(x) = x^T M_{k*} w_e, k* the row's likeliest expert
/// in the layer before, M_k = diag of weights that are large on the features on which cluster k is tight, of
/// mean 1 over the features. The dispersions s_qk are taken, in every batch, over the rows of which k is the
/// likeliest expert. No gradient goes through M, so ∂L/∂x holds M fixed. In a first layer, and where the
/// router is not placed, M = I: a linear router.
Kind adaptive_clustering_router_kind();

template <class Real>
std::unique_ptr<Router<Real>> make_adaptive_clustering_router(const Json& spec, const Layout& layout,
                                                              int experts);

}  // namespace moelab
