#pragma once

/// The routing of a mixture: which (row, expert) pairs it computes, and with which gates.
///
/// Terms: `probabilities` r are the scores normalised to sum 1. `selected` experts are those to which the
/// gating dispatches a row, including the effect of selection biases. The `serving` expert is the selected
/// expert with the largest gate (ties go to the lower index), −1 if a row has none.

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

// Exact assignment of rows to experts with several rows each.

/// An exact assignment by the Hungarian method, for columns that take several rows.
///
/// Each row in turn follows the cheapest augmenting path. An edge goes from a row to an expert, or from a
/// full expert through one of its rows to another expert. Prices of the experts keep reduced costs
/// nonnegative, so each path is a shortest path with nonnegative edges.
class Assignment {
 public:
  /// Assigns `rows` rows to experts with room for `most` rows each, with the least Σ cost(row, expert). Ties
  /// go to the lower expert.
  template <class Cost>
  void solve(int rows, int experts, int most, const Cost& cost) {
    experts_ = experts;
    prices_.assign(size(experts), 0.0);
    members_.resize(std::max(members_.size(), size(experts)));
    for (std::vector<int>& members : members_) members.clear();
    expert_of_.assign(size(rows), -1);
    for (int row = 0; row < rows; ++row) place(row, most, cost);
  }
  /// The expert of a row; −1 if its costs are NaN.
  int expert_of(int row) const { return expert_of_[size(row)]; }

 private:
  template <class Cost>
  void place(int row, int most, const Cost& cost) {
    constexpr double kUnreached = std::numeric_limits<double>::infinity();
    distances_.assign(size(experts_), kUnreached);
    from_row_.assign(size(experts_), row);
    is_done_.assign(size(experts_), 0);
    for (int e = 0; e < experts_; ++e) distances_[size(e)] = cost(row, e) - prices_[size(e)];
    int end = -1;
    while (true) {
      end = -1;
      for (int e = 0; e < experts_; ++e) {
        if (is_done_[size(e)] || !(distances_[size(e)] < kUnreached)) continue;
        if (end < 0 || distances_[size(e)] < distances_[size(end)]) end = e;
      }
      if (end < 0) return;
      if (static_cast<int>(members_[size(end)].size()) < most) break;
      is_done_[size(end)] = 1;
      for (const int member : members_[size(end)]) {
        const double own = cost(member, end) - prices_[size(end)];
        for (int e = 0; e < experts_; ++e) {
          const double by = distances_[size(end)] + (cost(member, e) - prices_[size(e)]) - own;
          if (is_done_[size(e)] || !(by < distances_[size(e)])) continue;
          distances_[size(e)] = by;
          from_row_[size(e)] = member;
        }
      }
    }
    const double length = distances_[size(end)];
    for (int e = 0; e < experts_; ++e) {
      if (is_done_[size(e)]) prices_[size(e)] += distances_[size(e)] - length;
    }
    for (int mover = -1; mover != row;) {
      mover = from_row_[size(end)];
      const int before = expert_of_[size(mover)];
      members_[size(end)].push_back(mover);
      expert_of_[size(mover)] = end;
      if (before >= 0) std::erase(members_[size(before)], mover);
      end = before;
    }
  }

  int experts_ = 0;
  std::vector<double> prices_, distances_;
  std::vector<std::vector<int>> members_;  ///< rows of each expert
  std::vector<int> expert_of_,
      from_row_;  ///< the expert of each row; the row through which the path reaches an expert
  std::vector<char> is_done_;
};

template <class Real>
struct Routing {
  int rows = 0;
  int experts = 0;
  int stride = 0;                ///< padded(E), the row stride of all (n, E) arrays here
  const Real* gates = nullptr;   ///< (n, stride), positive, or zero for pairs that are not active
  bool every_pair = false;       ///< all pairs are active; `offsets` and `pair_rows` are then unused
  std::vector<int> offsets;      ///< (E + 1): expert e's pairs are [offsets[e], offsets[e + 1])
  std::vector<int> pair_rows;    ///< the row of each pair, ascending within an expert
  std::vector<int> row_experts;  ///< the same pairs row by row: their experts, ascending within a row
  std::vector<int> row_ends;     ///< end of each row's pairs in `row_experts`

  Real gate_of(int row, int expert) const { return gates[entries(row, stride) + size(expert)]; }
  int pairs_of(int expert) const {
    return every_pair
               ? rows
               : offsets[static_cast<std::size_t>(expert) + 1] - offsets[static_cast<std::size_t>(expert)];
  }
};

/// Lists the pairs with a positive gate, by expert and by row. Gates must not be negative.
template <class Real>
void list_pairs(Routing<Real>& routing);

/// Lists the pairs if the candidate experts of each row are known, in ascending order. begin_pairs() empties
/// the lists, add_row() appends one row, and sort_pairs() sorts the pairs by expert at the end.
template <class Real>
void begin_pairs(Routing<Real>& routing);
template <class Real>
void add_row(Routing<Real>& routing, int row, std::span<const int> experts);
template <class Real>
void sort_pairs(Routing<Real>& routing);

/// Whether rows have on average less than 1 in 64 of the experts. Loops over pairs are then cheaper than
/// products over all experts.
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
      if (routing.every_pair) {  // there are no lists of pairs
        visit(i, e);
        continue;
      }
      const int pair = routing.offsets[static_cast<std::size_t>(e)] + i;
      visit(routing.pair_rows[static_cast<std::size_t>(pair)], e);
    }
  }
}

/// Scores with the learned noise of a training step. The K largest of h = γ + s ∘ ε are selected.
template <class Real>
struct NoisyScores {
  int k = 0;                      ///< 0: no learned noise
  const Real* noisy = nullptr;    ///< h (n, stride)
  const Real* spreads = nullptr;  ///< s (n, stride)
};

/// Rows mixed into slots. Slot (e, j) of a group of rows is Σ_i dispatch_i,ej x_i, and expert e reads it. Row
/// i gets Σ_ej combine_i,ej f_e(slot (e, j)). Columns are e · `each` + j.
template <class Real>
struct SlotMixing {
  int each = 0;                                 ///< slots of an expert; 0: experts read rows
  int group_rows = 0;                           ///< rows n of a group; the last group may have fewer
  AlignedVector<Real> dispatch, combine;        ///< (n, padded(E · each))
  AlignedVector<Real> of_dispatch, of_combine;  ///< ∂L/∂dispatch and ∂L/∂combine
  AlignedVector<Real> further, logit_gradient;  ///< what extra slots add to the scores; ∂L/∂logits
  bool has_logit_gradient = false;  ///< backward() left ∂L/∂logits, which is not passed on yet
};

/// The arrays of one batch's gating, reused from step to step.
template <class Real>
struct GatingScratch {
  AlignedVector<Real> probabilities;  ///< r (n, stride)
  AlignedVector<Real> gates;          ///< used if gates differ from r; gates before pairs were dropped
  AlignedVector<Real> kept_gates;     ///< used if pairs were dropped
  /// The values by which a gating selects, if they are neither scores nor r: activations, noisy scores, a
  /// plan.
  AlignedVector<Real> selected_by;
  AlignedVector<Real> noise_slope, noise_gradient;  ///< of learned noise: ∂h/∂(x W_noise), ∂L/∂(x W_noise)
  AlignedVector<Real> noise_spread;                 ///< s of learned noise
  NoisyScores<Real> noise;
  SlotMixing<Real> slots;
  Assignment assignment;               ///< of a balanced assignment
  double inverse_temperature = 1;      ///< 1 / τ, if a temperature divides the scores
  int sequence_rows = 1;               ///< rows that were routed as one
  const double* dispatched = nullptr;  ///< (E) sequences that each expert has had before; null if unknown
  bool is_frozen = false;              ///< losses on r have no gradient
  std::vector<int> rows, room;         ///< rows of one expert; room left at each expert
  std::vector<int> chosen;             ///< experts of one row
  AlignedVector<Real> values;          ///< values by which they are chosen, if no other array holds these
  std::vector<double> keys,
      column_scales;  ///< values by which rows are kept, (n); column scales of a plan, (E)
  Routing<Real> routing;
};

}  // namespace moelab
