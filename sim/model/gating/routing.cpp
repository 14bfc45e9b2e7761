#include "sim/model/gating/routing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// Whether one of kPadding gates, none of them negative, is positive: integer bits, which vectorise.
template <class Real>
bool any_positive(const Real* gates) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  Bits bits[kernels::kPadding];
  std::memcpy(bits, gates, sizeof bits);
  Bits any = 0;
  for (const Bits value : bits) any |= value;
  return any != 0;
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
  if (routing.pair_rows.size() < pairs) routing.pair_rows.resize(pairs);
  // `offsets[e]` walks to the start of expert e + 1 and is moved back afterwards.
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

// One pass over the gates, 16 at a time, then a counting sort of the pairs: with 4096 experts, of which a row
// has one or two, entry by entry took a quarter of a whole step.
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

}  // namespace moelab
