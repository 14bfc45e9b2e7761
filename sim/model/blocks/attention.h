#pragma once

/// Multi-head self-attention before a mixture, with hand-written passes.

#include "sim/base/random.h"
#include "sim/model/blocks/block.h"

namespace moelab {

/// `model.attention`.
struct AttentionOptions {
  int heads = 1;
  std::optional<int> key_dim = {};  ///< unset: d
  bool causal = false;
  bool residual = false;
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// U = MHA(X) = (1/H) Σ_h A_h X W_h, A_h = row-softmax(X W_Q,h^T W_K,h X^T / √k) for each sequence X (s, d):
/// heads averaged, W_h (d, d) the merged matrices of values and outputs, W_Q,h and W_K,h (k, d) (Nguyen et
/// al. 2025, Eq. 9, where the scale of Definitions 3 and 4 is taken: √D_qk, not √D). `causal` lets token i
/// attend to tokens j ≤ i only. The block hands on U, or with `residual` X + U (the source's equations have
/// none; its transformers do). Entries of W_Q, W_K and W start N(0, init_scale² / d), those of a head
/// whatever the number of heads.
///
/// A row that stands alone attends to itself: U = (1/H) Σ_h X W_h. Parameters lie in the block's range as
/// [W_Q^T | W_K^T | W] of each head, (d, padded(k)) and (d, padded(d)), padding zero. Leaves
/// LayerSignals::attention and adds what routers add to `attention_gradients` to its own gradients.
///
/// Arrays: "attention_query" and "attention_key" (H, k, d), "attention_value_output" (H, d, d): W_h, u = x
/// W_h.
template <class Real>
std::unique_ptr<Block<Real>> make_attention(const AttentionOptions& options, int input_dim, int tokens);

}  // namespace moelab
