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
struct Gating {
  enum class Kind { soft, top1, topk };
  Kind kind = Kind::soft;
  int k = 1;
  bool renormalize = true;
  double skip_below = 0.0;
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

/// Gate arrays of one batch, reused from step to step.
template <class Real>
struct GatingState {
  AlignedVector<Real> probabilities;  ///< r (n, stride)
  AlignedVector<Real> gates;          ///< used where gates differ from r
  Routing<Real> routing;
};

/// scores (n, padded(E)) → state.
template <class Real>
void gate(const Gating& gating, const Real* scores, int rows, int experts, GatingState<Real>& state);

/// ∂L/∂gates → ∂L/∂scores, both (n, padded(E)); in place is allowed. `gate_gradient` is read at active pairs
/// only.
template <class Real>
void gate_backward(const Gating& gating, const GatingState<Real>& state, Real* gate_gradient,
                   Real* score_gradient);

}  // namespace moelab
