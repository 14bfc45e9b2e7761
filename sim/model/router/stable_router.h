#pragma once

#include "sim/model/router/linear_router.h"

namespace moelab {

/// StableMoE (Dai et al. 2022), a baseline of Nielsen et al. 2025. In the first `distil_share` of training
/// γ_e(h) = w_e^T h learns as a linear router does (with a balance loss, if one is set), and a light router
/// u_e^T x of the model's own inputs x learns its assignment: mean over rows of
/// −log softmax(u^T x)_{argmax_e γ_e(h)} is added to the loss, the assignment held fixed. From then on the
/// scores are the light router's, frozen: a token's assignment depends on its input alone and stays.
/// Departure: the source keeps w_e^T h for the gates' values and the light router for the choice; here both
/// are the light router's, so that probabilities and assignments agree.
///
/// Arrays: those of the linear router, and "light_router_weight" (E, d) and its bias. State: the frozen copy
/// "frozen_light_router_weight" (E, d) with its bias, zeros before it is made, and "light_router_frozen" (1),
/// whether it is.
struct StableRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  double distil_share = 0.1;
  void bind(Fields& fields);
};

}  // namespace moelab
