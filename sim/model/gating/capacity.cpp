#include "sim/base/error.h"
#include "sim/model/gating/limited_gating.h"

namespace moelab {
namespace {

using Drop = CapacityOptions::Drop;

/// The selected experts of a row that are likelier than this one, or as likely and of a lower index.
template <class Real>
int choice_rank(const Real* gates, const Real* r, int expert, int experts) {
  int rank = 0;
  for (int e = 0; e < experts; ++e) {
    rank += gates[e] > 0 && (r[e] > r[expert] || (e < expert && r[e] == r[expert]));
  }
  return rank;
}

/// keys[row] ← by what the rows of one expert are kept, the smallest first.
template <class Real>
void write_keys(Drop drop, int expert, GatingScratch<Real>& scratch, Engine& engine) {
  for (const int row : scratch.rows) {
    const std::size_t at = entries(row, scratch.routing.stride);
    const Real* const r = scratch.probabilities.data() + at;
    double& key = scratch.keys[size(row)];
    if (drop == Drop::order) {
      key = choice_rank(scratch.gates.data() + at, r, expert, scratch.routing.experts);
    }
    if (drop == Drop::probability) key = -static_cast<double>(r[expert]);
    if (drop == Drop::random) key = draw_uniform(engine);
  }
}

}  // namespace

void CapacityOptions::bind(Fields& fields) {
  fields.add(
      "capacity_factor", capacity_factor, positive(),
      "each expert keeps at most ⌈capacity_factor · S / E⌉ of the S pairs of a group of rows: a training "
      "step's, at measurement batch_size samples after each other; what is dropped has gate 0 (default: "
      "no limit)");
  fields.add("drop", drop, {"order", "probability", "random", "next"},
             "what an expert over its capacity keeps: first choices before second ones, then rows in their "
             "order; the largest r_e; rows at random; or rows in their order choose among experts with room");
}

void check_capacity(const CapacityOptions& capacity, const std::string& path) {
  if (capacity.capacity_factor || capacity.drop == Drop::order) return;
  throw InvalidOption(path + ".drop", "given, but without capacity_factor nothing is dropped");
}

std::string capacity_looks_ahead(const CapacityOptions& capacity, int k) {
  if (!capacity.capacity_factor) return "";
  switch (capacity.drop) {
    case Drop::order:
      return k > 1 ? "a second choice loses its place to the first choice of a later row" : "";
    case Drop::probability:
      return "a row loses its place to a later one that is likelier";
    case Drop::random:
      return "a row loses its place to a later one by lot";
    case Drop::next:
      break;
  }
  return "";
}

template <class Real>
void drop_pairs(const CapacityOptions& capacity, const GatingContext<Real>& context,
                GatingScratch<Real>& scratch) {
  Routing<Real>& routing = scratch.routing;
  const std::size_t count = entries(routing.rows, routing.stride);
  reserve_entries(scratch.kept_gates, count);
  std::copy_n(scratch.gates.begin(), count, scratch.kept_gates.begin());
  routing.gates = scratch.kept_gates.data();
  if (scratch.keys.size() < size(routing.rows)) scratch.keys.resize(size(routing.rows));
  Engine engine;
  if (capacity.drop == Drop::random) engine = step_stream::engine(context.state, kStepDrops);
  for_each_group(context, [&](int first, int rows) {
    const Real* const gates = scratch.gates.data() + entries(first, routing.stride);
    const auto pairs =
        std::count_if(gates, gates + entries(rows, routing.stride), [](Real gate) { return gate > 0; });
    const double share = static_cast<double>(pairs) / context.experts;
    const int most = capacity_of(*capacity.capacity_factor, share);
    for (int e = 0; e < context.experts; ++e) {
      scratch.rows.clear();
      for (int row = first; row < first + rows; ++row) {
        if (scratch.gates[entries(row, routing.stride) + size(e)] > 0) scratch.rows.push_back(row);
      }
      if (static_cast<int>(scratch.rows.size()) <= most) continue;
      write_keys(capacity.drop, e, scratch, engine);
      const auto end_of_kept = scratch.rows.begin() + most;
      std::nth_element(scratch.rows.begin(), end_of_kept, scratch.rows.end(), [&](int a, int b) {
        const double key_a = scratch.keys[size(a)];
        const double key_b = scratch.keys[size(b)];
        return key_a != key_b ? key_a < key_b : a < b;
      });
      for (auto row = end_of_kept; row != scratch.rows.end(); ++row) {
        scratch.kept_gates[entries(*row, routing.stride) + size(e)] = 0;
      }
    }
  });
}

template void drop_pairs(const CapacityOptions&, const GatingContext<float>&, GatingScratch<float>&);
template void drop_pairs(const CapacityOptions&, const GatingContext<double>&, GatingScratch<double>&);

}  // namespace moelab
