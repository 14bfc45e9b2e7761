#pragma once

/// Multi-head self-attention before a mixture, with hand-written passes.

#include "sim/base/arrays.h"
#include "sim/model/attention_state.h"
#include "sim/model/blocks/block.h"

namespace moelab {

/// The options `model.attention`.
struct AttentionOptions {
  int heads = 1;
  std::optional<int> key_dim = {};  ///< unset: d
  bool causal = false;
  bool residual = false;
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// Multi-head self-attention with averaged heads: U = MHA(X) = (1/H) Σ_h A_h X W_h, A_h = row-softmax(X
/// W_Q,h^T W_K,h X^T / √k) for each sequence X (s, d).
///
/// W_h (d, d) merges the matrices of values and outputs; W_Q,h and W_K,h are (k, d) (Nguyen et al. 2025, Eq.
/// 9). The scale is from Definitions 3 and 4: √D_qk, not √D. With `causal` token i attends to tokens j ≤ i
/// only. The output is U, or X + U with `residual`. The source's equations have no residual connection; its
/// transformers have one. Entries of W_Q, W_K and W start N(0, init_scale² / d). A head's start does not
/// depend on the number of heads. A single row attends to itself: U = (1/H) Σ_h X W_h.
///
/// The block's parameters are [W_Q^T | W_K^T | W] of each head, (d, padded(k)) and (d, padded(d)), with zero
/// padding. The block leaves LayerSignals::attention. Its gradients include the routers' part in
/// `attention_gradients`.
///
/// Arrays: "attention_query" and "attention_key" (H, k, d), "attention_value_output" (H, d, d): W_h, u = x
/// W_h.
template <class Real>
std::unique_ptr<Block<Real>> make_attention(const AttentionOptions& options, int input_dim, int tokens);

// The record of self-attention with joined heads, for routers that read it.

/// Makes LayerSignals::attention for heads with values V_h = X W_h, W_h (d, k), joined by C_h (k, d).
///
/// U = Σ_h A_h V_h C_h is the mean over H heads of A_h c_h, with centres c_hj = H v_hj C_h. This is Eq. 9 of
/// Nguyen et al. 2025 with W_h replaced by H W_h C_h.
///
/// A forward pass calls start(), then keep_weights() and keep_centres() of each head. A backward pass adds
/// the gradients that routers left in `gradients`, if any.
template <class Real>
class AttentionRecord {
 public:
  AttentionState<Real> state;
  AttentionGradients<Real> gradients;

  /// Starts the record and copies U (n·s, d).
  void start(int heads, int tokens, const View<Real>& outputs);
  /// Keeps A_h of a sequence, from keys (s, k) and queries (s, k) that are already divided by √k.
  void keep_weights(int sample, int head, const View<const Real>& queries, const View<const Real>& keys,
                    bool causal);
  /// Keeps c_h, from V_h (n·s, k) and C_h (k, d).
  void keep_centres(int head, const View<const Real>& values, const View<const Real>& joint);

  /// ∂L/∂U (n·s, padded(d)) including the routers' part.
  const Real* with_own_outputs(const Real* output_gradient);
  /// ∂L/∂V_h += H ∂L/∂c_h C_h^T and ∂L/∂C_h += H V_h^T ∂L/∂c_h. Call it once per head.
  void add_to_values(int head, const View<const Real>& values, const View<const Real>& joint,
                     const View<Real>& of_values, const View<Real>& of_joint);

 private:
  View<Real> weights_of(AlignedVector<Real>& values, int sample, int head) const;
  View<Real> centres_of(AlignedVector<Real>& values, int head) const;
  /// The factor of c_h.
  Real scale() const { return static_cast<Real>(state.heads); }

  int rows_ = 0, tokens_ = 0, dim_ = 0;
  AlignedVector<Real> upstream_;
};

}  // namespace moelab
