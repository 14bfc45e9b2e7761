#pragma once

/// Which (row, expert) pairs a mixture computes, and with which gate.
///
/// The vocabulary of routing: `probabilities` r, the scores made to sum to 1; `selected`, the experts that
/// the gating dispatches a row to, biases of the selection included; `serving`, the selected expert with the
/// largest gate (ties to the lower index), −1 where a row has none.

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

// Exact assignment of rows to experts that take several of them each.

/// Assigns rows one after another along cheapest augmenting paths (the Hungarian method, for columns that
/// take several rows). Prices of the experts keep reduced costs from being negative, so each path is a
/// shortest one with edges that are none: row to expert, and from a full expert by one of its rows to
/// another.
class Assignment {
 public:
  /// Of n rows to experts with room for `most` each, least Σ cost(row, expert). Ties: the lower expert.
  template <class Cost>
  void solve(int rows, int experts, int most, const Cost& cost) {
    experts_ = experts;
    prices_.assign(size(experts), 0.0);
    members_.resize(std::max(members_.size(), size(experts)));
    for (std::vector<int>& members : members_) members.clear();
    expert_of_.assign(size(rows), -1);
    for (int row = 0; row < rows; ++row) place(row, most, cost);
  }
  /// −1 for a row whose costs are no numbers.
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
  std::vector<int> expert_of_, from_row_;  ///< of each row; the row by which the path reaches an expert
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
