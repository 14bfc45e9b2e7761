#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "tests/sim/model/blocks/block_check.h"

namespace moelab::sparse_constant_test {
namespace {

constexpr int kExperts = 300, kRows = 5, kOutputs = 3;

/// Two experts for each row but one, which has none; expert 7 has two rows.
struct TwoOfMany {
  TwoOfMany() : gates(entries(kRows, kernels::padded(kExperts))) {
    routing.rows = kRows;
    routing.experts = kExperts;
    routing.stride = kernels::padded(kExperts);
    const int chosen[kRows][2] = {{7, 299}, {0, 7}, {-1, -1}, {16, 17}, {150, 12}};
    for (int row = 0; row < kRows; ++row) {
      for (int i = 0; i < 2 && chosen[row][i] >= 0; ++i) {
        gates[entries(row, routing.stride) + size(chosen[row][i])] = 0.3 + 0.1 * row + 0.05 * i;
      }
    }
    routing.gates = gates.data();
    list_pairs(routing);
  }
  AlignedVector<double> gates;
  Routing<double> routing;
};

TEST_CASE("constant experts: two of 300 give what sums over all of them give") {
  const TwoOfMany two;
  REQUIRE(is_sparse(two.routing));
  const auto bank = make_expert_bank<double>(ExpertOptions::example("constant"), {4, kOutputs, kExperts});
  const auto scratch = bank->make_scratch();
  const int stride = kernels::padded(kOutputs);
  AlignedVector<double> parameters(bank->block_size()), outputs(entries(kRows, stride), 9.0),
      gradient(bank->block_size(), 9.0), gates(entries(kRows, two.routing.stride)),
      upstream(entries(kRows, stride));
  bank->initialize({3, 0}, parameters.data());
  for (int row = 0; row < kRows; ++row) {
    for (int j = 0; j < kOutputs; ++j) upstream[entries(row, stride) + size(j)] = row - 1.5 * j;
  }
  const std::vector<double> x(entries(kRows, 4));
  const View<const double> inputs{x.data(), kRows, 4, 4};
  bank->forward(inputs, two.routing, parameters.data(), *scratch, outputs.data(), true);
  ExpertGradients<double> gradients;
  gradients.outputs = upstream.data();
  gradients.parameters = gradient.data();
  gradients.gates = gates.data();
  bank->backward(inputs, two.routing, parameters.data(), *scratch, gradients);
  const auto u = [&](int e, int j) { return parameters[entries(e, stride) + size(j)]; };
  for (int row = 0; row < kRows; ++row) {
    for (int j = 0; j < kOutputs; ++j) {
      double sum = 0;
      for (int e = 0; e < kExperts; ++e) sum += two.routing.gate_of(row, e) * u(e, j);
      CHECK(outputs[entries(row, stride) + size(j)] == doctest::Approx(sum));
    }
  }
  for (int e = 0; e < kExperts; ++e) {
    for (int j = 0; j < kOutputs; ++j) {
      double sum = 0;
      for (int row = 0; row < kRows; ++row) {
        sum += two.routing.gate_of(row, e) * upstream[entries(row, stride) + size(j)];
      }
      CHECK(gradient[entries(e, stride) + size(j)] == doctest::Approx(sum));
    }
  }
  for_each_pair(two.routing, [&](int row, int e) {
    double product = 0;
    for (int j = 0; j < kOutputs; ++j) product += u(e, j) * upstream[entries(row, stride) + size(j)];
    CHECK(gates[entries(row, two.routing.stride) + size(e)] == doctest::Approx(product));
  });
}

}  // namespace
}  // namespace moelab::sparse_constant_test
