#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = scale for the expert that a hash of x names, just below 0 for the others (Roller et al. 2021).
/// `token`: a hash of the token's row of the model's inputs, so that every distinct row has an expert of its
/// own in each layer; `projection`: of the signs of x·p_b, p_b ~ N(0, I) fixed, b < bits, so that near rows
/// share one. Hashes name experts uniformly and are the same in every model of E experts; layers differ.
///
/// Array: "router_projection" (bits, d) of `projection`.
struct HashRouterOptions {
  enum class Of { token, projection };
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  Of of = Of::token;
  int bits = 8;
  double scale = 20.0;  ///< e^-20 is below what soft gates skip by default
  void bind(Fields& fields);
};

}  // namespace moelab
