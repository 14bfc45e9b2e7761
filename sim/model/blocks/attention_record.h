#pragma once

/// What routers see of self-attention whose heads are joined, and what they hand back.

#include "sim/base/view.h"
#include "sim/model/attention_state.h"

namespace moelab {

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
