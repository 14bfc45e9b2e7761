#pragma once

/// Theorem 2 of Dikkala et al. 2023 (appendix E): a softmax router whose rows start at E = O(k log k) samples
/// of a mixture of k Gaussians N(μ_c, I_d). The rows that started at samples of cluster c, and their experts,
/// are its specialists. The proof needs centres that are also random: of two on one ray, the longer one has
/// the larger scores everywhere.

#include <functional>

#include "analysis/theory/check.h"
#include "sim/base/types.h"

namespace moelab {

/// Centres (k, d).
using CentreRule = std::function<Matrix(Engine& engine, int clusters, int dim)>;
/// Uniform in the ball of radius √d (α = 1), drawn until they are ½-separated.
Matrix random_centres(Engine& engine, int clusters, int dim);
/// On one ray, with norms 1√d, 3√d, …: 2-separated, and not random.
Matrix ray_centres(Engine& engine, int clusters, int dim);

/// The routing mass that inputs give to other clusters' specialists falls as exp(−Ω(d)): the slope of the
/// logarithm of its mean against d from 32 to 64 (the flatter end of the 99.9 % interval) over that from 8 to
/// 16, which is 1 for an exponential and 1/4 for any power of d. Predicted: at least 1/2. Routers in which a
/// cluster owns no row are drawn again.
CheckFinding check_off_cluster_mass(const CheckEffort& effort, int clusters,
                                    const CentreRule& centres = random_centres);

/// Population gradient descent on constant experts and, at a small rate, the router: the largest over
/// clusters of the least ‖u_j − v_c‖ / ‖v_c‖ among the specialists of c at the end. `row_scale` multiplies
/// the samples at which the rows start; at `router_rate` 0 they stay there.
CheckFinding check_specialists(const CheckEffort& effort, double row_scale = 1, double router_rate = 1e-3);

}  // namespace moelab
