#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// A hierarchical gate (Jordan, Jacobs 1994): softmax(γ) = softmax(U x)_g · softmax over the group g of e of
/// w_e^T x, as γ_e(x) = log of that product. Experts e with ⌊e G / E⌋ = g are the group g; G is at most E.
/// Rows of U and of W start N(0, init_scale² I / d), those of W as a linear router's. With `bias` both levels
/// are affine, U x + c and w_e^T x + b_e, biases started at zero.
///
/// Arrays: "router_group_weight" (G, d), "router_within_weight" (E, d), and with `bias` "router_group_bias"
/// (G), "router_within_bias" (E).
struct TwoLevelRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  int groups = 2;
  bool bias = false;
  void bind(Fields& fields);
};

}  // namespace moelab
