#pragma once

/// The state of self-attention for a batch of n sequences with s tokens, and the gradients from routers that
/// read it.

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {

/// log A_h at entries that a causal mask hides. It is finite, so sums and differences stay finite.
constexpr double kMaskedLogWeight = -1e30;

/// Applies the causal mask M to logits (queries, keys), for queries from `first_query` on. It hides key j
/// from query i if j > i.
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

/// ∂L/∂(log A, centres, U) through the routers, in the shapes of AttentionState. A router calls
/// start_adding() before it adds, and touch() before it adds to a head of a sequence. Gradients of other
/// heads are undefined and count as zero, since most routers read one head of each sequence.
template <class Real>
struct AttentionGradients {
  AlignedVector<Real> log_weights;
  AlignedVector<Real> centres;
  AlignedVector<Real> outputs;
  bool used = false;  ///< whether a router added since the last forward pass

  /// Clears the gradients for n·s rows of padded(d) = `stride` entries, unless a router has already added.
  void start_adding(const AttentionState<Real>& state, int rows, int tokens, int stride) {
    if (used) return;
    used = true;
    rows_ = rows;
    tokens_ = tokens;
    stride_ = stride;
    heads_ = state.heads;
    reserve_entries(log_weights, entries(rows * heads_, weight_stride()));
    reserve_entries(centres, entries(rows * heads_, stride));
    reserve_entries(outputs, entries(rows, stride));
    std::fill_n(outputs.begin(), entries(rows, stride), Real(0));
    touched_.assign(size(rows / tokens * heads_), 0);
  }

  /// Clears a head of a sequence, the first time.
  void touch(int sample, int head) {
    char& touched = touched_[size(sample * heads_ + head)];
    if (touched) return;
    touched = 1;
    std::fill_n(log_weights_of(sample, head), entries(tokens_, weight_stride()), Real(0));
    std::fill_n(centres_of(sample, head), entries(tokens_, stride_), Real(0));
  }
  bool is_touched(int sample, int head) const { return used && touched_[size(sample * heads_ + head)]; }

  /// Gradients of a head of a sequence: (s, padded(s)) and (s, padded(d)).
  Real* log_weights_of(int sample, int head) {
    return log_weights.data() + entries(sample * heads_ + head, tokens_) * size(weight_stride());
  }
  Real* centres_of(int sample, int head) {
    return centres.data() + entries(head * rows_ + sample * tokens_, stride_);
  }

  /// Adds the routers' gradient of a head of a sequence to ∂L/∂Z (queries, keys), Z = log A + const, for
  /// queries from `first_query` on. It adds ∂L/∂log A − A (row sums of ∂L/∂log A).
  void add_to_logits(int sample, int head, int first_query, const View<const Real>& weights,
                     const View<Real>& of_logits) {
    if (!is_touched(sample, head)) return;
    const Real* own = log_weights_of(sample, head) + entries(first_query, weight_stride());
    for (int i = 0; i < weights.rows; ++i, own += weight_stride()) {
      const Real* const weight = weights.row(i);
      Real* const of_row = of_logits.row(i);
      const Real sum = std::accumulate(own, own + weights.columns, Real(0));
      for (int j = 0; j < weights.columns; ++j) of_row[j] += own[j] - weight[j] * sum;
    }
  }

 private:
  int weight_stride() const { return kernels::padded(tokens_); }
  int rows_ = 0, tokens_ = 0, stride_ = 0, heads_ = 0;
  std::vector<char> touched_;  // (n, H)
};

}  // namespace moelab
