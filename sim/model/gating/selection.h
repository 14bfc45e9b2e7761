#pragma once

/// What gatings have in common.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "sim/base/kernels/kernels.h"
#include "sim/model/gating/choice.h"
#include "sim/model/gating/gating.h"

namespace moelab {

/// Shapes of the batch, and room for r; nothing is left of another gating.
template <class Real>
void shape_routing(const GatingContext<Real>& context, GatingScratch<Real>& scratch) {
  scratch.noise = {};
  scratch.slots.each = 0;
  Routing<Real>& routing = scratch.routing;
  routing.rows = context.rows;
  routing.experts = context.experts;
  routing.stride = kernels::padded(context.experts);
  reserve_entries(scratch.probabilities, entries(routing.rows, routing.stride));
}

/// Shapes of the batch, and r ← softmax(γ).
template <class Real>
void start_routing(const GatingContext<Real>& context, GatingScratch<Real>& scratch) {
  shape_routing(context, scratch);
  const Routing<Real>& routing = scratch.routing;
  kernels::softmax_rows(context.scores, scratch.probabilities.data(), routing.rows, routing.experts,
                        routing.stride);
}

/// Gates of the batch, all zero.
template <class Real>
void clear_gates(GatingScratch<Real>& scratch) {
  Routing<Real>& routing = scratch.routing;
  const std::size_t count = entries(routing.rows, routing.stride);
  reserve_entries(scratch.gates, count);
  routing.gates = scratch.gates.data();
  std::fill_n(scratch.gates.begin(), count, Real(0));
}

/// Gates and pairs of the batch whose r is there: set(GatedRow), with scores of `selected_by` (n, stride),
/// writes the experts of a row to `chosen`, ascending, and their gates.
template <class Real, class Set>
void gate_rows(const Real* selected_by, GatingScratch<Real>& scratch, const Set& set) {
  clear_gates(scratch);
  Routing<Real>& routing = scratch.routing;
  begin_pairs(routing);
  for (int row = 0; row < routing.rows; ++row) {
    const std::size_t at = entries(row, routing.stride);
    set(GatedRow<Real>{selected_by + at, scratch.probabilities.data() + at, scratch.gates.data() + at});
    add_row<Real>(routing, row, scratch.chosen);
  }
  sort_pairs(routing);
}

/// ⌈factor · share⌉, at least 1.
inline int capacity_of(double factor, double share) {
  constexpr double kRounding = 1e-12;  // what is whole but for it counts as whole
  constexpr double kMost = std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::min(std::ceil(factor * share * (1 - kRounding)), kMost)));
}

/// Calls visit(first row, rows) for every group of rows that are routed together.
template <class Real, class Visit>
void for_each_group(const GatingContext<Real>& context, const Visit& visit) {
  const int most = context.group_rows > 0 ? context.group_rows : context.rows;
  for (int first = 0; first < context.rows; first += most) visit(first, std::min(most, context.rows - first));
}

/// ∂L/∂gates ← 0 at pairs that are not active.
template <class Real>
void clear_inactive(const Routing<Real>& routing, Real* gate_gradient) {
  if (routing.every_pair) return;
  std::size_t pair = 0;
  for (int row = 0; row < routing.rows; ++row) {
    Real* const values = gate_gradient + entries(row, routing.stride);
    int next = 0;
    for (; pair < size(routing.row_ends[size(row)]); ++pair) {
      const int e = routing.row_experts[pair];
      std::fill(values + next, values + e, Real(0));
      next = e + 1;
    }
    std::fill(values + next, values + routing.stride, Real(0));
  }
}

/// ∂L/∂gates → ∂L/∂scores at active pairs, in place, for gates that are a softmax over these alone.
template <class Real>
void softmax_backward_pairs(const Routing<Real>& routing, Real* gate_gradient) {
  std::size_t begin = 0;
  for (int row = 0; row < routing.rows; ++row) {
    Real* const values = gate_gradient + entries(row, routing.stride);
    const std::span experts(routing.row_experts.data() + begin, size(routing.row_ends[size(row)]) - begin);
    Real mean = 0;
    for (const int e : experts) mean += routing.gate_of(row, e) * values[e];
    for (const int e : experts) values[e] = routing.gate_of(row, e) * (values[e] - mean);
    begin += experts.size();
  }
}

/// ∂L/∂gates → ∂L/∂scores for gates r_e of a selection that is held fixed. Renormalised gates are the softmax
/// over the selected experts alone, those whose pair was dropped included.
template <class Real>
void selected_backward(bool renormalize, const GatingScratch<Real>& scratch, Real* gate_gradient,
                       Real* score_gradient) {
  const Routing<Real>& routing = scratch.routing;
  const bool is_in_place = gate_gradient == score_gradient,
             has_dropped = routing.gates != scratch.gates.data();
  clear_inactive(routing, gate_gradient);
  if (renormalize && is_in_place && !has_dropped && is_sparse(routing))
    return softmax_backward_pairs(routing, gate_gradient);
  kernels::softmax_backward_rows(renormalize ? scratch.gates.data() : scratch.probabilities.data(),
                                 gate_gradient, score_gradient, routing.rows, routing.experts,
                                 routing.stride);
}

/// σ(γ), and never 0, which would be no gate.
template <class Real>
Real sigmoid_gate(Real score) {
  return std::max(1 / (1 + std::exp(-score)), std::numeric_limits<Real>::min());
}

/// ∂L/∂gates → ∂L/∂scores for such gates.
template <class Real>
void sigmoid_gates_backward(const Routing<Real>& routing, Real* gate_gradient, Real* score_gradient) {
  clear_inactive(routing, gate_gradient);
  const std::size_t count = entries(routing.rows, routing.stride);
  for (std::size_t i = 0; i < count; ++i) {
    score_gradient[i] = gate_gradient[i] * routing.gates[i] * (1 - routing.gates[i]);
  }
}

}  // namespace moelab
