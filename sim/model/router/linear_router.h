#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = w_e^T x, no bias (Dikkala et al. 2023, section 2), or with `bias` w_e^T x + b_e (Nguyen et al.,
/// Statistical Advantages of Perturbing Cosine Router). Rows start N(0, init_scale² / d), biases zero.
Kind linear_router_kind();

template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const Json& spec, const Layout& layout, int experts);

}  // namespace moelab
