#pragma once

/// Multi-head self-attention before a mixture, with hand-written passes.

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/model/attention_state.h"
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

// What routers see of self-attention whose heads are joined, and what they hand back.

/// LayerSignals::attention of heads with values V_h = X W_h, W_h (d, k), that are joined by C_h (k, d):
/// U = Σ_h A_h V_h C_h is the mean over H heads of A_h c_h with centres c_hj = H v_hj C_h, which is Eq. 9 of
/// Nguyen et al. 2025 with H W_h C_h for its W_h.
///
/// Made in a forward pass by start(), then keep_weights() and keep_centres() of each head; on the way back
/// it adds what routers left in `gradients`, if anything.
template <class Real>
class AttentionRecord {
 public:
  AttentionState<Real> state;
  AttentionGradients<Real> gradients;

  /// For U (n·s, d), which it copies.
  void start(int heads, int tokens, const View<Real>& outputs);
  /// A_h of a sequence, from its queries, already divided by √k, and keys (s, k).
  void keep_weights(int sample, int head, const View<const Real>& queries, const View<const Real>& keys,
                    bool causal);
  /// c_h, from V_h (n·s, k) and C_h (k, d).
  void keep_centres(int head, const View<const Real>& values, const View<const Real>& joint);

  /// ∂L/∂U (n·s, padded(d)) with the routers' part.
  const Real* with_own_outputs(const Real* output_gradient);
  /// ∂L/∂V_h += H ∂L/∂c_h C_h^T and ∂L/∂C_h += H V_h^T ∂L/∂c_h. Once for each head.
  void add_to_values(int head, const View<const Real>& values, const View<const Real>& joint,
                     const View<Real>& of_values, const View<Real>& of_joint);

 private:
  View<Real> weights_of(AlignedVector<Real>& values, int sample, int head) const;
  View<Real> centres_of(AlignedVector<Real>& values, int head) const;
  /// What c_h is multiplied by.
  Real scale() const { return static_cast<Real>(state.heads); }

  int rows_ = 0, tokens_ = 0, dim_ = 0;
  AlignedVector<Real> upstream_;
};

}  // namespace moelab
