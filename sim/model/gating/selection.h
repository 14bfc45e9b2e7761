#pragma once

/// Shared helpers of gatings.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "sim/base/kernels/kernels.h"
#include "sim/base/random.h"
#include "sim/model/gating/gating.h"
#include "sim/model/parameters.h"

namespace moelab {

/// Sets the shapes of the batch and reserves r. Clears what another gating left.
template <class Real>
void shape_routing(const GatingContext<Real>& context, GatingScratch<Real>& scratch) {
  scratch.noise = {};
  scratch.slots.each = 0;
  scratch.dispatched = nullptr;
  scratch.is_frozen = false;
  Routing<Real>& routing = scratch.routing;
  routing.rows = context.rows;
  routing.experts = context.experts;
  routing.stride = kernels::padded(context.experts);
  reserve_entries(scratch.probabilities, entries(routing.rows, routing.stride));
}

/// Sets the shapes of the batch, and r ← softmax(γ).
template <class Real>
void start_routing(const GatingContext<Real>& context, GatingScratch<Real>& scratch) {
  shape_routing(context, scratch);
  const Routing<Real>& routing = scratch.routing;
  kernels::softmax_rows(context.scores, scratch.probabilities.data(), routing.rows, routing.experts,
                        routing.stride);
}

/// Sets all gates of the batch to zero.
template <class Real>
void clear_gates(GatingScratch<Real>& scratch) {
  Routing<Real>& routing = scratch.routing;
  const std::size_t count = entries(routing.rows, routing.stride);
  reserve_entries(scratch.gates, count);
  routing.gates = scratch.gates.data();
  std::fill_n(scratch.gates.begin(), count, Real(0));
}

/// Sets gates and pairs of a batch, from r. set(GatedRow) gets `selected_by` (n, stride) as scores. It writes
/// the row's experts to `chosen`, ascending, and their gates.
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
  constexpr double kRounding = 1e-12;  // a number this close to an integer counts as the integer
  constexpr double kMost = std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::min(std::ceil(factor * share * (1 - kRounding)), kMost)));
}

/// Calls visit(first row, rows) for every group of rows that are routed together.
template <class Real, class Visit>
void for_each_group(const GatingContext<Real>& context, const Visit& visit) {
  const int most = context.group_rows > 0 ? context.group_rows : context.rows;
  for (int first = 0; first < context.rows; first += most) visit(first, std::min(most, context.rows - first));
}

/// ∂L/∂gates ← 0 at inactive pairs.
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

/// ∂L/∂gates → ∂L/∂scores at active pairs, in place, for gates that are a softmax over the active pairs
/// alone.
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

/// ∂L/∂gates → ∂L/∂scores for gates r_e of a fixed selection. Renormalised gates are the softmax over the
/// selected experts alone, including experts whose pair was dropped.
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

/// σ(γ), but never 0, since a gate of 0 makes a pair inactive.
template <class Real>
Real sigmoid_gate(Real score) {
  return std::max(1 / (1 + std::exp(-score)), std::numeric_limits<Real>::min());
}

/// ∂L/∂gates → ∂L/∂scores for sigmoid gates.
template <class Real>
void sigmoid_gates_backward(const Routing<Real>& routing, Real* gate_gradient, Real* score_gradient) {
  clear_inactive(routing, gate_gradient);
  const std::size_t count = entries(routing.rows, routing.stride);
  for (std::size_t i = 0; i < count; ++i) {
    score_gradient[i] = gate_gradient[i] * routing.gates[i] * (1 - routing.gates[i]);
  }
}

// Random numbers of training steps, from a state that holds the step.

/// The uses of random numbers in a step. Uses under one key need different numbers. The jitter has a key of
/// its own. Adaptive clustering shares the key of the gatings, so no gating may have the number of
/// kStepWeights. The numbers are part of the draws: never renumber them.
enum StepUse : std::uint64_t {
  kStepNoise = 1,    ///< of gatings
  kStepDrops = 2,    ///< of gatings
  kStepJitter = 3,   ///< of mixtures
  kStepWeights = 3,  ///< of adaptive clustering
  kStepDropout = 4   ///< of residual blocks
};

/// The state of random streams, an array (3): a key, and the number of the step in two parts, each exact in
/// float. Its name is "gating_noise" for a gating.
namespace step_stream {

constexpr double kPart = 16777216;  ///< 2^24

inline StateArray array(const char* name = "gating_noise") {
  return {name, {3}};
}
/// `stream` is the stream of the key. Gatings and adaptive clustering use 1; the other arrays of a layer have
/// streams of their own.
inline void start(const Start& start, double* state, std::uint64_t stream = 1) {
  Engine engine = start.seeds.stream(Purpose::router_noise, stream);
  state[0] = static_cast<double>(engine() >> 40);
  state[1] = state[2] = 0;
}
inline void advance(double* state) {
  if (++state[1] < kPart) return;
  state[1] = 0;
  ++state[2];
}
/// The stream of a use in the state's step. Without a state, it is the stream of step 0 of any model, for
/// draws in measuring.
inline Engine engine(const double* state, std::uint64_t use) {
  if (!state) return Seeds{}.stream(Purpose::router_noise, use);
  const double step = state[1] + kPart * state[2];
  return Seeds{static_cast<std::uint64_t>(state[0]), static_cast<std::uint64_t>(step)}.stream(
      Purpose::router_noise, use);
}

}  // namespace step_stream

// Gatings that select K experts of a row and limit the rows of an expert.

/// Throws InvalidOption below `path` if `drop` is given but has no effect.
void check_capacity(const CapacityOptions& capacity, const std::string& path);

/// GatingKind::looks_ahead of a capacity. A row's selection may depend on earlier rows, which took their
/// places first. It looks ahead only if the row can lose its place to a later row.
std::string capacity_looks_ahead(const CapacityOptions& capacity, int k);

/// Gates ← 0, in `kept_gates`, for the pairs of each group that exceed an expert's capacity. Call it before
/// the pairs are listed.
template <class Real>
void drop_pairs(const CapacityOptions& capacity, const GatingContext<Real>& context,
                GatingScratch<Real>& scratch);

/// A gating with a capacity. `draws`: whether the gating draws random numbers in a step, apart from random
/// drops.
template <class Real>
class LimitedGating : public Gating<Real> {
 public:
  LimitedGating(const CapacityOptions& capacity, bool draws)
      : capacity_(capacity),
        draws_(draws || (capacity.capacity_factor && capacity.drop == CapacityOptions::Drop::random)) {}

  bool couples_rows() const override { return capacity_.capacity_factor.has_value(); }
  std::vector<StateArray> state_arrays() const override {
    if (!draws_) return {};
    return {step_stream::array()};
  }
  void start_state(const Start& start, double* state) const override {
    if (draws_) step_stream::start(start, state);
  }
  void begin_step(double* state) const override {
    if (draws_) step_stream::advance(state);
  }

 protected:
  /// Routes the batch, from r. row_at(place of the row's first entry) returns a GatedRow without gates.
  /// select() marks the k experts of each row, `chosen`, by its values, and calls set(GatedRow) to set the
  /// gates.
  template <class RowAt, class Set>
  void select(int k, const GatingContext<Real>& context, GatingScratch<Real>& scratch, const RowAt& row_at,
              const Set& set) const {
    clear_gates(scratch);
    Routing<Real>& routing = scratch.routing;
    begin_pairs(routing);
    const bool to_next = capacity_.capacity_factor && capacity_.drop == CapacityOptions::Drop::next;
    for_each_group(context, [&](int first, int rows) {
      if (to_next) {
        const double share = static_cast<double>(k) * rows / context.experts;
        scratch.room.assign(size(context.experts), capacity_of(*capacity_.capacity_factor, share));
      }
      for (int row = first; row < first + rows; ++row) {
        GatedRow<Real> gated = row_at(entries(row, routing.stride));
        gated.gates = scratch.gates.data() + entries(row, routing.stride);
        mark_largest(k, gated, context.selection_bias, context.experts, scratch,
                     to_next ? scratch.room.data() : nullptr);
        set(gated);
        add_row<Real>(routing, row, scratch.chosen);
      }
    });
    if (!capacity_.capacity_factor || to_next) return sort_pairs(routing);
    drop_pairs(capacity_, context, scratch);
    list_pairs(routing);
  }
  /// Selects by scores γ, or by r + bias.
  template <class Set>
  void select(int k, const GatingContext<Real>& context, GatingScratch<Real>& scratch, const Set& set) const {
    const auto row_at = [&](std::size_t at) {
      return GatedRow<Real>{context.scores + at, scratch.probabilities.data() + at, nullptr};
    };
    select(k, context, scratch, row_at, set);
  }

 private:
  CapacityOptions capacity_;
  bool draws_;
};

}  // namespace moelab
