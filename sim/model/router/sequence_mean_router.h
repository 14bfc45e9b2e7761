#pragma once

#include "sim/model/router/linear_router.h"

namespace moelab {

/// Routing by the sequence: γ_e(x_t) = w_e^T m, m the mean of all tokens x_j of the sequence, so that they go
/// one way; in a causal model of those up to the row's own, m_t = (1/t) Σ_{j ≤ t} x_j. A row that stands
/// alone is its own mean: there this is the linear router, with the same draws. Not from a paper: what a
/// model gains by routing tokens one by one is told by what it loses here.
///
/// Arrays: those of the linear router.
struct SequenceMeanRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  void bind(Fields& fields);
};

}  // namespace moelab
