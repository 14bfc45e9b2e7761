#pragma once

/// Gating: from scores γ (n, E) to probabilities r = softmax(γ) and gates, and back.

#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/schema.h"

namespace moelab {

/// `soft`: gate_e = r_e (pairs with r_e < skip_below are left out: zero output, zero gradient).
/// `top1`: gate 1 for the largest score (no gradient reaches the router).
/// `topk`: the K largest scores; gate_e = r_e / Σ_active r when renormalised, else r_e. The selection is held
/// fixed in the backward pass. Ties go to the lower index.
/// `topp`: every expert with r_e > p (a threshold, no nucleus; Nielsen et al. 2025), the likeliest where
/// there is none; gates as for topk. A step has no gradient in p, so the gates of a `learnable` threshold are
/// (r_e − p)⁺ (over their sum when renormalised): the same experts, and exact gradients in r and p. How the
/// paper learns its threshold it does not say.
struct Gating {
  enum class Kind { soft, top1, topk, topp };
  Kind kind = Kind::soft;
  int k = 1;
  bool renormalize = true;
  double skip_below = 0.0;
  double p = 0.0;  ///< of a learnable threshold its start
  bool learnable = false;
};

std::vector<Kind> gating_kinds();

/// Reads a resolved gating object. `default_skip_below` applies where a soft gating does not set it.
Gating read_gating(const Json& spec, double default_skip_below);

/// Which (row, expert) pairs are computed, and with which gate.
template <class Real>
struct Routing {
  int rows = 0;
  int experts = 0;
  int stride = 0;                ///< padded(E), the row stride of all (n, E) arrays here
  const Real* gates = nullptr;   ///< (n, stride), zero for pairs that are not active
  bool every_pair = false;       ///< all pairs are active; `offsets` and `pair_rows` are then unused
  std::vector<int> offsets;      ///< (E + 1): expert e's pairs are [offsets[e], offsets[e + 1])
  std::vector<int> pair_rows;    ///< the row of each pair, ascending within an expert
  std::vector<int> row_experts;  ///< the same pairs row by row: the expert of each,
  std::vector<int> row_ends;     ///< and where each row's end

  int pairs_of(int expert) const {
    return every_pair
               ? rows
               : offsets[static_cast<std::size_t>(expert) + 1] - offsets[static_cast<std::size_t>(expert)];
  }
};

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
struct GatingState {
  AlignedVector<Real> probabilities;  ///< r (n, stride)
  AlignedVector<Real> gates;          ///< used where gates differ from r
  Routing<Real> routing;
};

/// scores (n, padded(E)) → state. With `selection_bias` (E), topk and top1 select the largest r_e + bias_e
/// instead; gates are made from r all the same (loss-free balancing).
template <class Real>
void gate(const Gating& gating, const Real* scores, int rows, int experts, GatingState<Real>& state,
          const Real* selection_bias = nullptr);

/// ∂L/∂gates → ∂L/∂scores, both (n, padded(E)); in place is allowed. `gate_gradient` is read at active pairs
/// only. Returns ∂L/∂p of a learnable threshold, else 0.
template <class Real>
Real gate_backward(const Gating& gating, const GatingState<Real>& state, Real* gate_gradient,
                   Real* score_gradient);

}  // namespace moelab
