#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = w_e^T x, no bias (Dikkala et al. 2023, section 2). Rows start N(0, init_scale² / d).
Kind linear_router_kind();

template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const Json& spec, const Layout& layout, int experts);

}  // namespace moelab
