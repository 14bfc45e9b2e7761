#pragma once

/// Mixtures of spherical Gaussians with a target that depends on the component
/// (Dikkala et al. 2023, sections 3.1 and 3.2).

#include "sim/data/problem.h"

namespace moelab {

/// x = R [μ_c + σ g ; h],  c ~ weights, g ~ N(0, I_dim), h ~ N(0, I_spurious), R the identity or a random
/// rotation. Means: μ_c ~ N(0, mean_std² I), or drawn until ‖μ_i − μ_j‖ ≥ separation · σ · √dim for all
/// pairs. Targets: `constant` y = v_c, v_c ~ N(0, I_o);  `linear` y = W_c (x_signal − μ_c), W_c rows ~ N(0,
/// I_dim / dim).
const Kind& gaussian_mixture_kind();

/// Throws UserError at "data.weights" unless there is one for each cluster, and at "data.scale_to_separation"
/// unless there are a separation, a noise and two means to scale.
void check_gaussian_mixture(const Json& data);

std::unique_ptr<Problem> draw_gaussian_mixture(const Json& data, const Seeds& seeds);

}  // namespace moelab
