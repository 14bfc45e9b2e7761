#pragma once

/// Gatings that select K experts of a row, with a limit on the rows of an expert.

#include "sim/model/gating/selection.h"
#include "sim/model/gating/step_stream.h"

namespace moelab {

/// Throws InvalidOption below `path` where `drop` is given without effect.
void check_capacity(const CapacityOptions& capacity, const std::string& path);

/// See GatingKind::looks_ahead. Who comes first, and who chooses what is left, is known when a row comes;
/// that it loses its place to a later row is not.
std::string capacity_looks_ahead(const CapacityOptions& capacity, int k);

/// Gates ← 0, in `kept_gates`, for the pairs of each group of rows that an expert has no capacity for. Before
/// the pairs are listed.
template <class Real>
void drop_pairs(const CapacityOptions& capacity, const GatingContext<Real>& context,
                GatingScratch<Real>& scratch);

/// `draws`: whether the gating draws random numbers in a step, apart from those that say what is dropped.
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
  /// Routes the batch whose r is there: marks the k experts of each row, `chosen`, by what row_at(place of
  /// its first entry), a GatedRow without gates, has, and calls set(GatedRow) for its gates.
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
  /// By scores γ, or r + bias.
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
