#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = β1_e^T x / ((‖β1_e‖ + τ1) (‖x‖ + τ2)) + β0_e (Nguyen et al., Statistical Advantages of Perturbing
/// Cosine Router in Mixture of Experts; the cosine is Chi et al. 2022's without their temperature, as on the
/// slides). `cosine` is τ1 = τ2 = 0; where a norm is zero, its cosine and the gradient of it are taken as
/// zero. Rows β1_e start N(0, init_scale² / d), biases zero. The router of X-MoE (Chi et al. 2022) is
/// `cosine` with both `projection_dim` m, which puts x A, A (d, m), in the place of x (see ProjectedRouter),
/// and `temperature`, the start of a learned t > 0 that divides the cosine.
///
/// Arrays: "router_direction" (E, d) or (E, m), the rows β1, whose scale says little, "router_bias" (E), and
/// with them "router_projection" and "router_log_scale" (1), log 1/t, where there are such.
Kind cosine_router_kind();
Kind perturbed_cosine_router_kind();

template <class Real>
std::unique_ptr<Router<Real>> make_cosine_router(const Json& spec, const Layout& layout, int experts);

}  // namespace moelab
