#pragma once

/// Multi-head self-attention of transformers, with hand-written passes that keep no (s, s) array unless a
/// router looks at it.

#include "sim/model/blocks/block.h"

namespace moelab {

struct SelfAttentionSetting {
  int dim = 0;    ///< d
  int heads = 1;  ///< H, a divisor of d
  int tokens = 1;
  bool rotary = false;  ///< needs an even d / H
  bool causal = true;
  bool recorded = false;  ///< leaves LayerSignals::attention, for routers that look at it
};

/// Y = [A_1 X W_V,1 | … | A_H X W_V,H] W_O, A_h = row-softmax(Q_h K_h^T / √k + M), k = d / H, for each
/// sequence X (s, d): Q_h = X W_Q,h, K_h = X W_K,h, M = −∞ above the diagonal, or 0 where it is not causal
/// (Vaswani et al. 2017), no biases. `rotary` turns the pairs (j, j + k/2) of a row t of Q_h and K_h by the
/// angle t 10000^(−2j/k) (Su et al. 2021). Entries of all matrices start N(0, 1 / d).
///
/// A is computed for a block of queries at a time, and once more on the way back; whole only where it is
/// recorded (attention_record.h). Differs from the attention of `model.attention` (attention.h), which merges
/// W_V and W_O and averages heads.
///
/// Parameters [W_Q | W_K | W_V], (d, 3 H padded(k)), and W_O, (H padded(k), padded(d)), padding zero. Arrays
/// "query", "key", "value" (d, d), head after head in a row of the result: q = query x, and "output" (d, d):
/// y = output (the heads' results).
template <class Real>
std::unique_ptr<Block<Real>> make_self_attention(const SelfAttentionSetting& setting);

}  // namespace moelab
