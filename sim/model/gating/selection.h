#pragma once

/// What gatings have in common.

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/kernels/kernels.h"
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

/// A row as gatings that select see it: γ and r (E), and gates to be set, at first all zero.
template <class Real>
struct GatedRow {
  const Real* scores;
  const Real* probabilities;
  Real* gates;
};

/// Gates of the batch, all zero.
template <class Real>
void clear_gates(GatingScratch<Real>& scratch) {
  Routing<Real>& routing = scratch.routing;
  const std::size_t count = entries(routing.rows, routing.stride);
  reserve_entries(scratch.gates, count);
  routing.gates = scratch.gates.data();
  std::fill_n(scratch.gates.begin(), count, Real(0));
}

/// Routes the batch with the gates that set(GatedRow) gives each row.
template <class Real, class Set>
void gate_rows(const GatingContext<Real>& context, GatingScratch<Real>& scratch, const Set& set) {
  start_routing(context, scratch);
  clear_gates(scratch);
  Routing<Real>& routing = scratch.routing;
  for (int row = 0; row < routing.rows; ++row) {
    const std::size_t at = entries(row, routing.stride);
    set(GatedRow<Real>{context.scores + at, scratch.probabilities.data() + at, scratch.gates.data() + at});
  }
  list_pairs(routing);
}

/// ⌈factor · share⌉, at least 1.
inline int capacity_of(double factor, double share) {
  constexpr double kRounding = 1e-12;  // what is whole but for it counts as whole
  return std::max(1, static_cast<int>(std::ceil(factor * share * (1 - kRounding))));
}

/// Calls visit(first row, rows) for every group of rows that are routed together.
template <class Real, class Visit>
void for_each_group(const GatingContext<Real>& context, const Visit& visit) {
  const int most = context.group_rows > 0 ? context.group_rows : context.rows;
  for (int first = 0; first < context.rows; first += most) visit(first, std::min(most, context.rows - first));
}

/// Marks the k largest of the values by gate 1: of r_e + bias_e, or without biases of the scores, since
/// probabilities may tie where scores do not. Ties go to the lower index. k passes: k is small, and no
/// scratch is needed. With `room` (E), among the experts that have some, and it shrinks.
template <class Real>
void mark_largest(int k, const GatedRow<Real>& row, const double* bias, int experts, int* room = nullptr) {
  const Real* const values = bias ? row.probabilities : row.scores;
  for (int chosen = 0; chosen < k; ++chosen) {
    int best = -1;
    Real largest = 0;
    for (int e = 0; e < experts; ++e) {
      const Real value = bias ? values[e] + static_cast<Real>(bias[e]) : values[e];
      if (row.gates[e] != 0 || (best >= 0 && !(value > largest)) || (room && room[e] == 0)) continue;
      best = e;
      largest = value;
    }
    if (best < 0) return;
    row.gates[best] = 1;
    if (room) --room[best];
  }
}

/// r_e for the experts whose gate is marked by 1, divided by their sum when renormalised.
template <class Real>
void set_gates(bool renormalize, const GatedRow<Real>& row, int experts) {
  Real total = 0;
  for (int e = 0; e < experts; ++e) {
    if (row.gates[e] != 0) total += row.probabilities[e];
  }
  for (int e = 0; e < experts; ++e) {
    if (row.gates[e] != 0) row.gates[e] = renormalize ? row.probabilities[e] / total : row.probabilities[e];
  }
}

/// ∂L/∂gates ← 0 at pairs that are not active.
template <class Real>
void clear_inactive(const Routing<Real>& routing, Real* gate_gradient) {
  if (routing.every_pair) return;
  const std::size_t count = entries(routing.rows, routing.stride);
  for (std::size_t i = 0; i < count; ++i) {
    gate_gradient[i] = routing.gates[i] == 0 ? Real(0) : gate_gradient[i];
  }
}

/// ∂L/∂gates → ∂L/∂scores for gates r_e of a selection that is held fixed. Renormalised gates are the softmax
/// over the selected experts alone, those whose pair was dropped included.
template <class Real>
void selected_backward(bool renormalize, const GatingScratch<Real>& scratch, Real* gate_gradient,
                       Real* score_gradient) {
  const Routing<Real>& routing = scratch.routing;
  clear_inactive(routing, gate_gradient);
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
