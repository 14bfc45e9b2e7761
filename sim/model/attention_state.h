#pragma once

/// What self-attention computed for a batch of n sequences of s tokens, and what routers that look at it hand
/// back.

#include "sim/base/aligned.h"

namespace moelab {

/// log A_h where a causal mask lets nothing through: finite, so that sums and differences stay numbers.
constexpr double kMaskedLogWeight = -1e30;

template <class Real>
struct AttentionState {
  int heads = 0;
  AlignedVector<Real> weights;      ///< A_h (n, H, s, padded(s))
  AlignedVector<Real> log_weights;  ///< log A_h, same shape
  AlignedVector<Real> centres;      ///< x_j^T W_h (H, n·s, padded(d)), padding zero
  AlignedVector<Real> outputs;      ///< U = MHA(X) (n·s, padded(d)), padding zero
};

/// ∂L/∂(log A, centres, U) through the router, in those shapes.
template <class Real>
struct AttentionGradients {
  AlignedVector<Real> log_weights;
  AlignedVector<Real> centres;
  AlignedVector<Real> outputs;
};

}  // namespace moelab
