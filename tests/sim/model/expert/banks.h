#pragma once

/// Banks of every kind on fixed rows and gates, for tests that each of them must pass.

#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "tests/sim/model/blocks/block_check.h"

namespace moelab::banks {

constexpr int kInputs = 5, kExperts = 4, kRows = 6;

/// Few outputs and many: some kinds have a bank for each.
constexpr int kOutputs[] = {1, 3, 6};

/// Gates (n, E) uniform on [0.1, 1.1], zero for inactive pairs.
struct Gates {
  using Inactive = bool(int row, int expert);
  explicit Gates(Inactive& inactive) : values(entries(kRows, kernels::padded(kExperts))) {
    Engine engine(4);
    routing.rows = kRows;
    routing.experts = kExperts;
    routing.stride = kernels::padded(kExperts);
    for (int row = 0; row < kRows; ++row) {
      for (int e = 0; e < kExperts; ++e) {
        const double gate = 0.1 + draw_uniform(engine);
        values[entries(row, routing.stride) + size(e)] = inactive(row, e) ? 0.0 : gate;
      }
    }
    routing.gates = values.data();
    list_pairs(routing);
  }
  Gates(const Gates&) = delete;
  AlignedVector<double> values;
  Routing<double> routing;
};
inline bool none(int /*row*/, int /*expert*/) {
  return false;
}
/// Expert 1 has no rows, row 2 no experts.
inline bool some(int row, int expert) {
  return expert == 1 || row == 2 || (row + expert) % 3 == 0;
}
inline bool all_but_expert_1(int /*row*/, int expert) {
  return expert != 1;
}
inline constexpr Gates::Inactive* kPatterns[] = {none, some};

/// A bank with its scratch, on rows that lie `gap` NaNs apart.
struct BankRun {
  BankRun(const std::string& kind, int output_dim, int gap = 0)
      : outputs(output_dim),
        stride(kernels::padded(output_dim)),
        bank(make_expert_bank<double>(ExpertOptions::example(kind), {kInputs, output_dim, kExperts})),
        scratch(bank->make_scratch()),
        parameters(bank->block_size()),
        gradient(bank->block_size(), std::numeric_limits<double>::quiet_NaN()),
        values(entries(kRows, kInputs + gap), std::numeric_limits<double>::quiet_NaN()),
        x(values.data(), kRows, kInputs, kInputs + gap) {
    bank->initialize({3, 0}, parameters.data());
    const std::vector<double> rows = normal_values(1, entries(kRows, kInputs));
    for (int i = 0; i < kRows; ++i) std::copy_n(rows.data() + i * kInputs, kInputs, x.row(i));
  }

  /// f (n, padded(o)), and x̃ (n, E, padded(o)) where pairs are active, else zero.
  void forward(const Routing<double>& routing) {
    f.assign(entries(kRows, stride), std::numeric_limits<double>::quiet_NaN());
    bank->forward(x, routing, parameters.data(), *scratch, f.data(), true);
    pairs.assign(entries(kRows * kExperts, stride), 0.0);
    bank->pair_outputs(routing, parameters.data(), *scratch, pairs.data());
  }
  /// From ∂L/∂f, normal, and ∂L/∂x̃ where it is given.
  void backward(const Routing<double>& routing, const double* pair_gradient = nullptr) {
    upstream.assign(entries(kRows, stride), 0.0);
    const std::vector<double> normal = normal_values(2, entries(kRows, outputs));
    for (int i = 0; i < kRows; ++i) {
      std::copy_n(normal.data() + i * outputs, outputs, upstream.data() + i * stride);
    }
    gate_gradient.assign(entries(kRows, routing.stride), 0.0);
    input_gradient.assign(entries(kRows, kernels::padded(kInputs)), 0.0);
    bank->backward(x, routing, parameters.data(), *scratch,
                   {.outputs = upstream.data(),
                    .pair_outputs = pair_gradient,
                    .parameters = gradient.data(),
                    .gates = gate_gradient.data(),
                    .inputs = input_gradient.data()});
  }

  int outputs, stride;
  std::unique_ptr<ExpertBank<double>> bank;
  std::unique_ptr<Scratch> scratch;
  AlignedVector<double> parameters, gradient, values;
  View<double> x;
  AlignedVector<double> f, pairs, upstream, gate_gradient, input_gradient;
};

/// Calls visit(kind, outputs) for every kind and number of outputs.
template <class Visit>
void for_each_bank(const Visit& visit) {
  for (const ExpertKind& kind : ExpertAxis::table()) {
    for (const int outputs : kOutputs) {
      CAPTURE(kind.name);
      CAPTURE(outputs);
      visit(kind.name, outputs);
    }
  }
}

}  // namespace moelab::banks
