#pragma once

/// Multi-head self-attention before a mixture, with hand-written passes.

#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/data/layout.h"
#include "sim/model/attention_state.h"
#include "sim/model/named_array.h"

namespace moelab {

/// U = MHA(X) = (1/H) Σ_h A_h X W_h, A_h = row-softmax(X W_Q,h^T W_K,h X^T / √k) for each sequence X (s, d):
/// heads averaged, W_h (d, d) the merged matrices of values and outputs, W_Q,h and W_K,h (k, d) (Nguyen et
/// al. 2025, Eq. 9, where the scale of Definitions 3 and 4 is taken: √D_qk, not √D). `causal` lets token i
/// attend to tokens j ≤ i only. The block hands on U, or with `residual` X + U (the source's equations have
/// none; its transformers do). Entries of W_Q, W_K and W start N(0, init_scale² / d), those of a head
/// whatever the number of heads.
///
/// A row that stands alone attends to itself: U = (1/H) Σ_h X W_h. Parameters lie in a block of the model's
/// flat buffer, [W_Q^T | W_K^T | W] of each head, (d, padded(k)) and (d, padded(d)), padding zero.
template <class Real>
class AttentionBlock {
 public:
  /// From a resolved `model.attention` object. Throws UserError where an image leads the input.
  AttentionBlock(const Json& spec, const Layout& layout);

  std::size_t parameter_count() const;
  std::size_t block_size() const { return size(heads_) * head_size(); }
  void initialize(const Seeds& seeds, Real* parameters) const;

  /// u (n·s, d) ← the rows handed on, for rows x (n·s, d).
  void forward(const Real* x, int rows, const Real* parameters, Real* u);
  /// Weights, centres and U of the last forward pass.
  const AttentionState<Real>& state() const { return state_; }
  /// Zeros for a batch of `rows` rows, for a router to add to before backward().
  AttentionGradients<Real>& cleared_gradients(int rows);
  /// From ∂L/∂u (n·s, padded(d), padding zero), and from `cleared_gradients` what a router added there, the
  /// gradient of the parameters (overwritten, padding zero) and, unless null, ∂L/∂x (n·s, padded(d)), which
  /// may be the array of ∂L/∂u. For the batch of the last forward pass.
  void backward(const Real* x, int rows, const Real* parameters, const Real* output_gradient,
                const AttentionGradients<Real>* router_gradients, Real* gradient, Real* input_gradient);

  /// "attention_query" and "attention_key" (H, k, d), "attention_value_output" (H, d, d): W_h, u = x W_h.
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const;

 private:
  int key_stride() const;
  int stride() const;
  std::size_t key_size() const { return entries(dim_, key_stride()); }
  std::size_t head_size() const { return 2 * key_size() + entries(dim_, stride()); }
  /// Entries of the attention weights of one sequence and head.
  std::size_t weights_size() const { return entries(tokens_, weight_stride()); }
  int weight_stride() const;
  void weigh_tokens(int rows);
  void head_backward(int head, int rows, const AttentionGradients<Real>* router_gradients);

  int heads_;
  int key_dim_;
  int dim_;
  int tokens_;
  bool causal_;
  bool residual_;
  double init_scale_;
  AttentionState<Real> state_;
  AttentionGradients<Real> gradients_;
  AlignedVector<Real> queries_, keys_;                 ///< X W_Q^T / √k and X W_K^T (H, n·s, padded(k))
  AlignedVector<Real> mean_gradient_;                  ///< ∂L/∂(Σ_h A_h X W_h) (n·s, padded(d))
  AlignedVector<Real> weight_gradient_;                ///< of one sequence and head (s, padded(s))
  AlignedVector<Real> query_gradient_, key_gradient_;  ///< of one head (n·s, padded(k))
  AlignedVector<Real> centre_gradient_;                ///< of one head (n·s, padded(d))
};

/// The shape of `model.attention`.
const Shape& attention_shape();

}  // namespace moelab
