#pragma once

/// What the blocks of a model hand on to the routers of later blocks, beside the rows themselves.

#include "sim/base/view.h"
#include "sim/model/attention_state.h"

namespace moelab {

/// One value that passes through the list of blocks: each reads what those before it left, and adds its own.
template <class Real>
struct LayerSignals {
  /// The model's own inputs (n, d).
  View<const Real> first_inputs;
  /// The true cluster of each row (n); null where nobody knows it.
  const int* labels = nullptr;
  /// Inputs (n, d) and routing probabilities r (n, E) of the mixture before; empty before the first.
  View<const Real> previous_inputs;
  View<const Real> previous_probabilities;
  /// Of the attention block that handed on the rows; null where there is none.
  const AttentionState<Real>* attention = nullptr;
  /// Where a router's backward pass adds to ∂L/∂(that state); null as above.
  AttentionGradients<Real>* attention_gradients = nullptr;
};

}  // namespace moelab
