#pragma once

/// A block's gradients against central differences.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "tests/sim/model/blocks/block_run.h"

namespace moelab {

/// A further term of the loss, read from what a block leaves in the signals; `adds` asks it to add its
/// gradient there, as routers do.
using SignalTerm = std::function<double(const LayerSignals<double>& signals, bool adds)>;

/// Checks ∂L/∂parameters and ∂L/∂x of L = Σ_ij c_ij f(x)_ij + the further term, c normal, against central
/// differences on the first rows around which L is smooth, and that a gradient with an entry off would not
/// pass. The rows x lie `gap` entries further apart than need be.
inline void check_block_gradients(const Block<double>& block, int input_dim, int rows, int tokens = 1,
                                  const SignalTerm& term = nullptr, int gap = 3) {
  // Truncation leaves step² f‴/6 ≈ 1e-12 in a difference, rounding ε L / step ≈ 2e-10 L, L below 100 here.
  constexpr double kDifferenceStep = 1e-6, kLargestError = 1e-6;
  // One-sided differences of a smooth loss differ by step · f″, near 1e-5; at a kink by its bend.
  constexpr double kLargestBend = 1e-3;
  BlockRun run(block, rows, input_dim, tokens, gap);
  run.move_parameters();
  const std::vector<double> weights = normal_values(9, entries(run.output_view().rows, block.output_dim()));
  const auto loss = [&] {
    const std::vector<double> outputs = run.forward();
    const double sum = std::inner_product(outputs.begin(), outputs.end(), weights.begin(), 0.0);
    return term ? sum + term(run.signals, false) : sum;
  };
  double bend = 0;
  const auto difference = [&](double& variable) {
    const double kept = variable, here = loss();
    variable = kept + kDifferenceStep;
    const double above = loss();
    variable = kept - kDifferenceStep;
    const double below = loss();
    variable = kept;
    bend = std::max(bend, std::abs(above - 2 * here + below) / kDifferenceStep);
    return (above - below) / (2 * kDifferenceStep);
  };
  std::vector<double> of_parameters, of_inputs;
  for (std::uint64_t seed = 1; of_inputs.empty() || bend > kLargestBend; ++seed) {
    REQUIRE(seed <= 50);
    run.set_inputs(normal_values(seed, entries(rows, input_dim)));
    bend = 0;
    of_parameters.clear();
    for (double& parameter : run.parameters) of_parameters.push_back(difference(parameter));
    of_inputs.clear();
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < kernels::padded(input_dim); ++j) {
        of_inputs.push_back(j < input_dim ? difference(run.inputs(i, j)) : 0.0);
      }
    }
  }
  run.forward();
  if (term) term(run.signals, true);
  run.backward(weights);
  const auto worst = [&](const AlignedVector<double>& gradient, const std::vector<double>& differences) {
    double largest = 0, error = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double miss = std::abs(gradient[i] - differences[i]);
      largest = std::max({largest, std::abs(gradient[i]), std::abs(differences[i])});
      error = std::isfinite(miss) ? std::max(error, miss) : INFINITY;
    }
    return error > 0 ? error / largest : 0.0;
  };
  for (const auto& [gradient, differences] :
       {std::pair{run.gradient, of_parameters}, std::pair{run.input_gradient, of_inputs}}) {
    CHECK(worst(gradient, differences) <= kLargestError);
    AlignedVector<double> wrong = gradient;
    const auto largest = std::max_element(wrong.begin(), wrong.end(), [](double left, double right) {
      return std::abs(left) < std::abs(right);
    });
    if (largest == wrong.end() || *largest == 0) continue;
    *largest *= 1.01;
    CHECK(worst(wrong, differences) > kLargestError);
  }
  // The parameters' gradient does not depend on who asks for the inputs'.
  const AlignedVector<double> with_inputs = run.gradient;
  run.forward();
  if (term) term(run.signals, true);
  run.backward(weights, false);
  CHECK(run.gradient == with_inputs);
}

}  // namespace moelab
