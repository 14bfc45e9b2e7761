#include "sim/model/gating/routing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

/// Whether one of kPadding nonnegative gates is positive. It uses integer bits, which compilers vectorise.
template <class Real>
bool any_positive(const Real* gates) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  Bits bits[kernels::kPadding];
  std::memcpy(bits, gates, sizeof bits);
  Bits any = 0;
  for (const Bits value : bits) any |= value;
  return any != 0;
}

using Drop = CapacityOptions::Drop;

/// The number of selected experts of a row with a larger probability than this one. Ties count experts with a
/// lower index.
template <class Real>
int choice_rank(const Real* gates, const Real* r, int expert, int experts) {
  int rank = 0;
  for (int e = 0; e < experts; ++e) {
    rank += gates[e] > 0 && (r[e] > r[expert] || (e < expert && r[e] == r[expert]));
  }
  return rank;
}

/// keys[row] ← the value by which one expert's rows are kept, the smallest first.
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

template <class Real>
void begin_pairs(Routing<Real>& routing) {
  routing.row_experts.clear();
  routing.row_ends.clear();
}

template <class Real>
void add_row(Routing<Real>& routing, int row, std::span<const int> experts) {
  const Real* const gates = routing.gates + entries(row, routing.stride);
  for (const int e : experts) {
    if (gates[e] > 0) routing.row_experts.push_back(e);
  }
  routing.row_ends.push_back(static_cast<int>(routing.row_experts.size()));
}

template <class Real>
void sort_pairs(Routing<Real>& routing) {
  const std::size_t experts = size(routing.experts), pairs = routing.row_experts.size();
  routing.offsets.assign(experts + 1, 0);
  for (const int e : routing.row_experts) ++routing.offsets[size(e) + 1];
  for (std::size_t e = 0; e < experts; ++e) routing.offsets[e + 1] += routing.offsets[e];
  if (routing.pair_rows.size() < pairs) {
    routing.pair_rows = std::vector<int>();  // growing in place may take three times as much for a moment
    routing.pair_rows.resize(pairs);
  }
  // `offsets[e]` moves to the start of expert e + 1, and is moved back afterwards.
  std::size_t pair = 0;
  for (int row = 0; row < routing.rows; ++row) {
    for (; pair < size(routing.row_ends[size(row)]); ++pair) {
      const std::size_t e = size(routing.row_experts[pair]);
      routing.pair_rows[size(routing.offsets[e]++)] = row;
    }
  }
  for (std::size_t e = experts; e > 0; --e) routing.offsets[e] = routing.offsets[e - 1];
  routing.offsets[0] = 0;
  routing.every_pair = pairs == experts * size(routing.rows);
}

// One pass over the gates, 16 at a time, then a counting sort of the pairs. A loop over single entries took a
// quarter of a whole step, with 4096 experts and one or two experts per row.
template <class Real>
void list_pairs(Routing<Real>& routing) {
  begin_pairs(routing);
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const gates = routing.gates + entries(row, routing.stride);
    for (int start = 0; start < routing.stride; start += kernels::kPadding) {
      if (!any_positive(gates + start)) continue;
      for (int e = start; e < start + kernels::kPadding; ++e) {
        if (gates[e] > 0) routing.row_experts.push_back(e);
      }
    }
    routing.row_ends.push_back(static_cast<int>(routing.row_experts.size()));
  }
  sort_pairs(routing);
}

template <class Real>
int serving_expert(const Routing<Real>& routing, int row) {
  const Real* const gates = routing.gates + entries(row, routing.stride);
  if (routing.every_pair) return static_cast<int>(std::max_element(gates, gates + routing.experts) - gates);
  int serving = -1;
  const int begin = row == 0 ? 0 : routing.row_ends[size(row) - 1];
  for (int at = begin; at < routing.row_ends[size(row)]; ++at) {
    const int e = routing.row_experts[size(at)];  // ascending
    if (serving < 0 || gates[e] > gates[serving]) serving = e;
  }
  return serving;
}

template void list_pairs(Routing<float>&);
template void list_pairs(Routing<double>&);
template void begin_pairs(Routing<float>&);
template void begin_pairs(Routing<double>&);
template void add_row(Routing<float>&, int, std::span<const int>);
template void add_row(Routing<double>&, int, std::span<const int>);
template void sort_pairs(Routing<float>&);
template void sort_pairs(Routing<double>&);
template int serving_expert(const Routing<float>&, int);
template int serving_expert(const Routing<double>&, int);

void CapacityOptions::bind(Fields& fields) {
  fields.add("capacity_factor", capacity_factor, positive(),
             "each expert keeps at most ⌈capacity_factor · S / E⌉ of a group's S pairs; dropped pairs have "
             "gate 0 (default: no limit)");
  fields.add("drop", drop, {"order", "probability", "random", "next"},
             "what an expert keeps: first choices before second ones; the largest r_e; rows at random; or "
             "rows choose in order among experts with room");
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
