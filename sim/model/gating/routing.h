#pragma once

/// Which (row, expert) pairs a mixture computes, and with which gate.
///
/// The vocabulary of routing: `probabilities` r, the scores made to sum to 1; `selected`, the experts that
/// the gating dispatches a row to, biases of the selection included; `serving`, the selected expert with the
/// largest gate (ties to the lower index), −1 where a row has none.

#include <span>
#include <vector>

#include "sim/base/aligned.h"
#include "sim/model/gating/assignment.h"

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

  Real gate_of(int row, int expert) const { return gates[entries(row, stride) + size(expert)]; }
  int pairs_of(int expert) const {
    return every_pair
               ? rows
               : offsets[static_cast<std::size_t>(expert) + 1] - offsets[static_cast<std::size_t>(expert)];
  }
};

/// Lists the pairs with a positive gate, by expert and by row. No gate is negative.
template <class Real>
void list_pairs(Routing<Real>& routing);

/// The same where it is known which experts of a row, in ascending order, may have one: lists begin empty,
/// take one row after another, and are sorted by expert at the end.
template <class Real>
void begin_pairs(Routing<Real>& routing);
template <class Real>
void add_row(Routing<Real>& routing, int row, std::span<const int> experts);
template <class Real>
void sort_pairs(Routing<Real>& routing);

/// Whether a row has less than one in 64 of the experts: then what goes from pair to pair is cheaper than
/// products over all.
template <class Real>
bool is_sparse(const Routing<Real>& routing) {
  return !routing.every_pair && 64 * routing.row_experts.size() < size(routing.rows) * size(routing.experts);
}

/// The serving expert of a row.
template <class Real>
int serving_expert(const Routing<Real>& routing, int row);

/// Calls visit(row, expert) for every active pair, expert by expert.
template <class Real, class Visit>
void for_each_pair(const Routing<Real>& routing, const Visit& visit) {
  for (int e = 0; e < routing.experts; ++e) {
    for (int i = 0; i < routing.pairs_of(e); ++i) {
      if (routing.every_pair) {  // there are no lists
        visit(i, e);
        continue;
      }
      const int pair = routing.offsets[static_cast<std::size_t>(e)] + i;
      visit(routing.pair_rows[static_cast<std::size_t>(pair)], e);
    }
  }
}

/// Scores to which a training step has added learned noise: the K largest of h = γ + s ∘ ε are selected.
template <class Real>
struct NoisyScores {
  int k = 0;                      ///< 0: no such noise
  const Real* noisy = nullptr;    ///< h (n, stride)
  const Real* spreads = nullptr;  ///< s (n, stride)
};

/// Rows mixed into slots: slot (e, j) of a group of rows is Σ_i dispatch_i,ej x_i, which expert e reads, and
/// row i gets Σ_ej combine_i,ej f_e(slot (e, j)). Columns e · `each` + j.
template <class Real>
struct SlotMixing {
  int each = 0;                                 ///< slots of an expert; 0: experts read rows
  int group_rows = 0;                           ///< n of a group, the last one's at most
  AlignedVector<Real> dispatch, combine;        ///< (n, padded(E · each))
  AlignedVector<Real> of_dispatch, of_combine;  ///< ∂L/∂ those
  AlignedVector<Real> further, logit_gradient;  ///< what further slots add to the scores; ∂L/∂logits
  bool has_logit_gradient = false;              ///< that of backward(), not yet handed on
};

/// Gate arrays of one batch, reused from step to step.
template <class Real>
struct GatingScratch {
  AlignedVector<Real> probabilities;  ///< r (n, stride)
  AlignedVector<Real> gates;          ///< used where gates differ from r; before pairs were dropped
  AlignedVector<Real> kept_gates;     ///< used where pairs were dropped
  /// What a gating selects by where that is neither scores nor r: activations, noisy scores, a plan.
  AlignedVector<Real> selected_by;
  AlignedVector<Real> noise_slope, noise_gradient;  ///< of learned noise: ∂h/∂(x W_noise), ∂L/∂(x W_noise)
  AlignedVector<Real> noise_spread;                 ///< s of learned noise
  NoisyScores<Real> noise;
  SlotMixing<Real> slots;
  Assignment assignment;                    ///< of a balanced one
  double inverse_temperature = 1;           ///< of scores that a temperature divides
  std::vector<int> rows, room;              ///< of one expert; left at each expert
  std::vector<int> chosen;                  ///< experts of one row
  AlignedVector<Real> values;               ///< by which they are chosen, where no array holds that
  std::vector<double> keys, column_scales;  ///< by which rows are kept, (n); of a plan, (E)
  Routing<Real> routing;
};

}  // namespace moelab
