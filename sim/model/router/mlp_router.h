#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ(x) = MLP(x) with ReLU hidden layers and biases (Dikkala et al. 2023, appendix C.1: depth 3 for
/// subspaces). Depth counts weight matrices; depth 1 is an affine router. Hidden weights start N(0, 2 / in),
/// the output layer's N(0, init_scale² / in), one stream per expert, so that expert e's row does not depend
/// on E.
Kind mlp_router_kind();

template <class Real>
std::unique_ptr<Router<Real>> make_mlp_router(const Json& spec, const Layout& layout, int experts);

}  // namespace moelab
