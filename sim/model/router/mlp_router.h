#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ(x) = MLP(x) with ReLU hidden layers and biases (Dikkala et al. 2023, appendix C.1: depth 3 for
/// subspaces). Depth counts weight matrices; depth 1 is an affine router. Hidden weights start N(0, 2 / in),
/// the output layer's N(0, init_scale² / in), one stream per expert, so that expert e's row does not depend
/// on E.
///
/// Arrays: "router_weight_1" (width, d), "router_bias_1" (width), …
struct MlpRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  int depth = 3;
  int width = 96;
  void bind(Fields& fields);
};

}  // namespace moelab
