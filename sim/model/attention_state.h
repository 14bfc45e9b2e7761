#pragma once

/// What self-attention computed for a batch of n sequences of s tokens, and what routers that look at it hand
/// back.

#include <algorithm>

#include "sim/base/aligned.h"
#include "sim/base/view.h"

namespace moelab {

/// log A_h where a causal mask lets nothing through: finite, so that sums and differences stay numbers.
constexpr double kMaskedLogWeight = -1e30;

/// The causal mask M on logits (queries, keys) of the queries from `first_query` on: key j is hidden from
/// query i where j > i.
template <class Real>
void hide_later_keys(const View<Real>& logits, int first_query = 0) {
  for (int row = 0; row < logits.rows; ++row) {
    const int seen = std::min(first_query + row + 1, logits.columns);
    std::fill(logits.row(row) + seen, logits.row(row) + logits.columns, static_cast<Real>(kMaskedLogWeight));
  }
}

template <class Real>
struct AttentionState {
  int heads = 0;
  AlignedVector<Real> weights;      ///< A_h (n, H, s, padded(s))
  AlignedVector<Real> log_weights;  ///< log A_h, same shape
  AlignedVector<Real> centres;      ///< x_j^T W_h (H, n·s, padded(d)), padding zero
  AlignedVector<Real> outputs;      ///< U = MHA(X) (n·s, padded(d)), padding zero
};

/// ∂L/∂(log A, centres, U) through the routers, in those shapes. A router calls start_adding() before it
/// adds.
template <class Real>
struct AttentionGradients {
  AlignedVector<Real> log_weights;
  AlignedVector<Real> centres;
  AlignedVector<Real> outputs;
  bool used = false;  ///< whether a router added since the last forward pass

  /// Zeros in the shapes of `state`, unless a router has added already.
  void start_adding(const AttentionState<Real>& state) {
    if (used) return;
    used = true;
    const auto clear = [](AlignedVector<Real>& values, std::size_t count) {
      reserve_entries(values, count);
      std::fill_n(values.begin(), count, Real(0));
    };
    clear(log_weights, state.log_weights.size());
    clear(centres, state.centres.size());
    clear(outputs, state.outputs.size());
  }
};

}  // namespace moelab
