#pragma once

#include <optional>

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = β1_e^T x / (‖β1_e‖ ‖x‖) + β0_e, the cosine without a temperature (Chi et al. 2022; Nguyen et al.,
/// Statistical Advantages of Perturbing Cosine Router in Mixture of Experts). Where a norm is zero, its
/// cosine and the gradient of it are taken as zero. Rows β1_e start N(0, init_scale² / d), biases zero. The
/// router of X-MoE (Chi et al. 2022) is this with both `projection_dim` m, which puts x A, A (d, m), in the
/// place of x (see ProjectedRouter), and `temperature`, the start of a learned t > 0 that divides the cosine.
///
/// Arrays: "router_direction" (E, d) or (E, m), the rows β1, whose scale says little, "router_bias" (E), and
/// with them "router_projection" (m, d) and "router_log_scale" (1), log 1/t, where there are such.
struct CosineRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::optional<int> projection_dim = {};  ///< m; unset: the router reads x itself
  std::optional<double> temperature = {};  ///< where t starts; unset: t = 1
  void bind(Fields& fields);
};
RouterKind cosine_router();

/// γ_e(x) = β1_e^T x / ((‖β1_e‖ + τ1) (‖x‖ + τ2)) + β0_e (Nguyen et al., as above). Starts and arrays as
/// above.
struct PerturbedCosineRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  double tau1 = 0.1;
  double tau2 = 0.1;
  void bind(Fields& fields);
};

}  // namespace moelab
