#pragma once

/// Which (row, expert) pairs a mixture computes, and with which gate.
///
/// The vocabulary of routing: `probabilities` r, the scores made to sum to 1; `selected`, the experts that
/// the gating dispatches a row to, biases of the selection included; `serving`, the selected expert with the
/// largest gate (ties to the lower index), −1 where a row has none.

#include <vector>

#include "sim/base/aligned.h"

namespace moelab {

template <class Real>
struct Routing {
  int rows = 0;
  int experts = 0;
  int stride = 0;                ///< padded(E), the row stride of all (n, E) arrays here
  const Real* gates = nullptr;   ///< (n, stride), positive, or zero for pairs that are not active
  bool every_pair = false;       ///< all pairs are active; `offsets` and `pair_rows` are then unused
  std::vector<int> offsets;      ///< (E + 1): expert e's pairs are [offsets[e], offsets[e + 1])
  std::vector<int> pair_rows;    ///< the row of each pair, ascending within an expert
  std::vector<int> row_experts;  ///< the same pairs row by row: the expert of each, ascending within a row,
  std::vector<int> row_ends;     ///< and where each row's end

  int pairs_of(int expert) const {
    return every_pair
               ? rows
               : offsets[static_cast<std::size_t>(expert) + 1] - offsets[static_cast<std::size_t>(expert)];
  }
};

/// Lists the pairs with a positive gate, by expert and by row. No gate is negative.
template <class Real>
void list_pairs(Routing<Real>& routing);

/// The serving expert of a row.
template <class Real>
int serving_expert(const Routing<Real>& routing, int row);

/// Calls visit(row, expert) for every active pair, expert by expert.
template <class Real, class Visit>
void for_each_pair(const Routing<Real>& routing, const Visit& visit) {
  for (int e = 0; e < routing.experts; ++e) {
    for (int i = 0; i < routing.pairs_of(e); ++i) {
      visit(
          routing.every_pair
              ? i
              : routing.pair_rows[static_cast<std::size_t>(routing.offsets[static_cast<std::size_t>(e)] + i)],
          e);
    }
  }
}

/// Gate arrays of one batch, reused from step to step.
template <class Real>
struct GatingScratch {
  AlignedVector<Real> probabilities;  ///< r (n, stride)
  AlignedVector<Real> gates;          ///< used where gates differ from r; before pairs were dropped
  AlignedVector<Real> kept_gates;     ///< used where pairs were dropped
  /// What a gating selects by where that is neither scores nor r: activations, noisy scores, a plan.
  AlignedVector<Real> selected_by;
  AlignedVector<Real> noise_slope, noise_gradient;  ///< of learned noise: ∂h/∂(x W_noise), ∂L/∂(x W_noise)
  std::vector<int> rows, room;                      ///< of one expert; left at each expert
  std::vector<double> keys, column_scales;          ///< by which rows are kept, (n); of a plan, (E)
  Routing<Real> routing;
};

}  // namespace moelab
