#include "sim/model/gating.h"

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

/// Lists the pairs with a positive gate by expert. One pass over the gates, 16 at a time, then a counting
/// sort of the pairs: with 4096 experts, of which a row has one or two, entry by entry took a quarter of a
/// whole step.
template <class Real>
void list_pairs(Routing<Real>& routing) {
  const std::size_t experts = static_cast<std::size_t>(routing.experts);
  routing.offsets.assign(experts + 1, 0);
  std::vector<int>& row_experts = routing.row_experts;
  std::vector<int>& row_ends = routing.row_ends;
  row_experts.clear();
  row_ends.clear();
  for (int row = 0; row < routing.rows; ++row) {
    const Real* gates = routing.gates + static_cast<std::ptrdiff_t>(row) * routing.stride;
    for (int start = 0; start < routing.stride; start += kernels::kPadding) {
      if (!any_positive(gates + start)) continue;
      for (int e = start; e < start + kernels::kPadding; ++e) {
        if (gates[e] > 0) row_experts.push_back(e);
      }
    }
    row_ends.push_back(static_cast<int>(row_experts.size()));
  }
  const std::size_t pairs = row_experts.size();
  for (const int e : row_experts) ++routing.offsets[static_cast<std::size_t>(e) + 1];
  for (std::size_t e = 0; e < experts; ++e) routing.offsets[e + 1] += routing.offsets[e];
  if (routing.pair_rows.size() < pairs) routing.pair_rows.resize(pairs);
  // `offsets[e]` walks to the start of expert e + 1 and is moved back afterwards.
  std::size_t pair = 0;
  for (int row = 0; row < routing.rows; ++row) {
    for (; pair < static_cast<std::size_t>(row_ends[static_cast<std::size_t>(row)]); ++pair) {
      const std::size_t e = static_cast<std::size_t>(row_experts[pair]);
      routing.pair_rows[static_cast<std::size_t>(routing.offsets[e]++)] = row;
    }
  }
  for (std::size_t e = experts; e > 0; --e) routing.offsets[e] = routing.offsets[e - 1];
  routing.offsets[0] = 0;
  routing.every_pair = pairs == experts * static_cast<std::size_t>(routing.rows);
}

/// r_e for the experts whose gate is marked by 1, divided by their sum when renormalised.
template <class Real>
void set_gates(bool renormalize, const Real* probabilities, int experts, Real* gates) {
  Real total = 0;
  for (int e = 0; e < experts; ++e) {
    if (gates[e] != 0) total += probabilities[e];
  }
  for (int e = 0; e < experts; ++e) {
    if (gates[e] != 0) gates[e] = renormalize ? probabilities[e] / total : probabilities[e];
  }
}

/// (r_e − p)⁺ for the experts whose gate is marked by 1, over their sum when renormalised; a row without an
/// expert above p keeps its mark.
template <class Real>
void set_excess_gates(bool renormalize, Real p, const Real* probabilities, int experts, Real* gates) {
  Real total = 0;
  for (int e = 0; e < experts; ++e) {
    if (probabilities[e] > p) total += gates[e] = probabilities[e] - p;
  }
  if (!renormalize || total == 0) return;
  for (int e = 0; e < experts; ++e) gates[e] /= total;
}

/// ∂L/∂gates of one row → ∂L/∂r for set_excess_gates; returns ∂L/∂p = −Σ_e ∂L/∂r_e.
template <class Real>
Real excess_gates_backward(bool renormalize, Real p, const Real* probabilities, const Real* gates,
                           int experts, Real* gradient) {
  Real total = 0;
  Real mean = 0;  // Σ_e gate_e ∂L/∂gate_e
  for (int e = 0; e < experts; ++e) {
    if (!(probabilities[e] > p)) continue;
    total += probabilities[e] - p;
    mean += gates[e] * gradient[e];
  }
  Real sum = 0;
  for (int e = 0; e < experts; ++e) {
    const bool active = probabilities[e] > p;
    gradient[e] = !active ? Real(0) : renormalize ? (gradient[e] - mean) / total : gradient[e];
    sum += gradient[e];
  }
  return -sum;
}

/// Marks the k largest of `values` (+ `bias`) by 1. k passes: k is small, and no scratch is needed.
template <class Real>
void mark_largest(int k, const Real* values, const Real* bias, int experts, Real* gates) {
  for (int chosen = 0; chosen < k; ++chosen) {
    int best = -1;
    Real largest = 0;
    for (int e = 0; e < experts; ++e) {
      const Real value = bias ? values[e] + bias[e] : values[e];
      if (gates[e] != 0 || (best >= 0 && !(value > largest))) continue;
      best = e;
      largest = value;
    }
    gates[best] = 1;
  }
}

/// Marks the experts with r_e > p, the likeliest where there is none.
template <class Real>
void mark_above(Real p, const Real* probabilities, int experts, Real* gates) {
  int marked = 0;
  for (int e = 0; e < experts; ++e) {
    gates[e] = probabilities[e] > p ? Real(1) : Real(0);
    marked += gates[e] != 0;
  }
  if (marked == 0) mark_largest<Real>(1, probabilities, nullptr, experts, gates);
}

}  // namespace

std::vector<Kind> gating_kinds() {
  return {
      {"soft",
       "gate_e = r_e = softmax(γ)_e: every expert, weighted",
       {{"skip_below", Shape::fraction(),
         "leave out pairs with r_e(x) below this (default 1e-8 with sgd, 0 with adam and adamw)",
         kOptional}}},
      {"top1", "gate 1 for the largest score; gives the router no gradient", {}},
      {"topk",
       "gates r_e of the K largest scores, renormalised to sum 1 unless told",
       {{"k", Shape::count(1, 65536), "experts per row K"},
        {"renormalize", Shape::boolean(), "divide the K gates by their sum (default: true for K > 1)",
         kOptional}}},
      {"topp",
       "gates r_e of every expert with r_e > p, the likeliest where there is none, renormalised to sum 1 "
       "unless told (Nielsen et al. 2025)",
       {{"p", Shape::fraction(), "threshold p", 0.05},
        {"learnable", Shape::boolean(),
         "p starts here and is learned in every layer, at the router's rate; gates (r_e − p)⁺", false},
        {"renormalize", Shape::boolean(), "divide the gates by their sum", true}}},
  };
}

Gating read_gating(const Json& spec, double default_skip_below) {
  Gating gating;
  const std::string kind = spec.at("kind");
  if (kind == "soft") {
    gating.kind = Gating::Kind::soft;
    gating.skip_below = spec.value("skip_below", default_skip_below);
  } else if (kind == "top1") {
    gating.kind = Gating::Kind::top1;
  } else if (kind == "topp") {
    gating.kind = Gating::Kind::topp;
    gating.p = spec.at("p");
    gating.learnable = spec.at("learnable");
    gating.renormalize = spec.at("renormalize");
  } else {
    gating.kind = Gating::Kind::topk;
    gating.k = spec.at("k");
    gating.renormalize = spec.value("renormalize", gating.k > 1);
  }
  return gating;
}

template <class Real>
void gate(const Gating& gating, const Real* scores, int rows, int experts, GatingState<Real>& state,
          const Real* selection_bias) {
  Routing<Real>& routing = state.routing;
  routing.rows = rows;
  routing.experts = experts;
  routing.stride = kernels::padded(experts);
  const std::size_t entries = static_cast<std::size_t>(rows) * static_cast<std::size_t>(routing.stride);
  reserve_entries(state.probabilities, entries);
  kernels::softmax_rows(scores, state.probabilities.data(), rows, experts, routing.stride);
  if (gating.kind == Gating::Kind::soft && gating.skip_below == 0.0) {
    routing.gates = state.probabilities.data();
    routing.every_pair = true;
    return;
  }
  reserve_entries(state.gates, entries);
  routing.gates = state.gates.data();
  if (gating.kind == Gating::Kind::soft) {
    const Real threshold = static_cast<Real>(gating.skip_below);
    for (std::size_t i = 0; i < entries; ++i) {
      state.gates[i] = state.probabilities[i] >= threshold ? state.probabilities[i] : Real(0);
    }
  } else {
    std::fill(state.gates.begin(), state.gates.begin() + static_cast<std::ptrdiff_t>(entries), Real(0));
    const int k = gating.kind == Gating::Kind::top1 ? 1 : std::min(gating.k, experts);
    for (int row = 0; row < rows; ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * routing.stride;
      const Real* const r = state.probabilities.data() + at;
      Real* const gates = state.gates.data() + at;
      if (gating.kind == Gating::Kind::topp) {
        mark_above(static_cast<Real>(gating.p), r, experts, gates);
      } else {
        // Without biases by scores: probabilities may tie where scores do not.
        mark_largest(k, selection_bias ? r : scores + at, selection_bias, experts, gates);
      }
      if (gating.learnable) {
        set_excess_gates(gating.renormalize, static_cast<Real>(gating.p), r, experts, gates);
      } else if (gating.kind != Gating::Kind::top1) {
        set_gates(gating.renormalize, r, experts, gates);
      }
    }
  }
  list_pairs(routing);
}

template <class Real>
Real gate_backward(const Gating& gating, const GatingState<Real>& state, Real* gate_gradient,
                   Real* score_gradient) {
  const Routing<Real>& routing = state.routing;
  const std::size_t entries =
      static_cast<std::size_t>(routing.rows) * static_cast<std::size_t>(routing.stride);
  if (gating.kind == Gating::Kind::top1) {
    std::fill(score_gradient, score_gradient + entries, Real(0));
    return 0;
  }
  const bool restricted = gating.kind != Gating::Kind::soft && gating.renormalize && !gating.learnable;
  if (!routing.every_pair) {
    for (std::size_t i = 0; i < entries; ++i) {
      gate_gradient[i] = routing.gates[i] == 0 ? Real(0) : gate_gradient[i];
    }
  }
  Real threshold_gradient = 0;
  if (gating.learnable) {
    for (int row = 0; row < routing.rows; ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * routing.stride;
      threshold_gradient += excess_gates_backward(gating.renormalize, static_cast<Real>(gating.p),
                                                  state.probabilities.data() + at, routing.gates + at,
                                                  routing.experts, gate_gradient + at);
    }
  }
  // Renormalised top-k gates are the softmax over the chosen experts alone.
  kernels::softmax_backward_rows(restricted ? routing.gates : state.probabilities.data(), gate_gradient,
                                 score_gradient, routing.rows, routing.experts, routing.stride);
  return threshold_gradient;
}

template void gate<float>(const Gating&, const float*, int, int, GatingState<float>&, const float*);
template void gate<double>(const Gating&, const double*, int, int, GatingState<double>&, const double*);
template float gate_backward<float>(const Gating&, const GatingState<float>&, float*, float*);
template double gate_backward<double>(const Gating&, const GatingState<double>&, double*, double*);

}  // namespace moelab
