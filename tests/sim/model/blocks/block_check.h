#pragma once

/// A block by itself: its passes on rows of its own, and its gradients against central differences.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/blocks/block.h"

namespace moelab {

/// Standard normal values.
inline std::vector<double> normal_values(std::uint64_t seed, std::size_t count) {
  Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
  std::vector<double> values(count);
  for (double& value : values) value = draw_normal(engine);
  return values;
}

/// The entries of a flat buffer of `count` that named arrays hold; the others are padding. `arrays_of` gives
/// the arrays of a buffer.
template <class ArraysOf>
std::vector<std::size_t> free_places(std::size_t count, const ArraysOf& arrays_of) {
  AlignedVector<double> numbered(count);
  std::iota(numbered.begin(), numbered.end(), 0.0);
  std::vector<std::size_t> places;
  for (const NamedArray<double>& array : arrays_of(numbered.data())) {
    places.insert(places.end(), array.values.begin(), array.values.end());
  }
  return places;
}

/// A block with parameters, a scratch and inputs (n, d) that lie `gap` NaNs apart.
struct BlockRun {
  BlockRun(const Block<double>& of, int rows, int columns, int tokens = 1, int gap = 0)
      : block(of),
        input_dim(columns),
        values(entries(rows, columns + gap), std::numeric_limits<double>::quiet_NaN()),
        inputs(values.data(), rows, columns, columns + gap),
        parameters(of.block_size()),
        scratch(of.make_scratch()),
        outputs(entries(of.output_rows(rows, tokens), stride())) {
    pass.tokens = tokens;
    pass.keep = true;
    block.initialize({{3, 0}}, parameters.data());
    std::int64_t numbers = 0;
    for (const StateArray& array : block.state_arrays()) numbers += array.size();
    state.resize(size(numbers));
    block.start_state({{3, 0}}, state.data());
  }
  BlockRun(const BlockRun&) = delete;

  int stride() const { return kernels::padded(block.output_dim()); }
  View<double> output_view() {
    return {outputs.data(), block.output_rows(inputs.rows, pass.tokens), block.output_dim(), stride()};
  }
  void set_inputs(const std::vector<double>& x) {
    for (int i = 0; i < inputs.rows; ++i) std::copy_n(x.data() + i * input_dim, input_dim, inputs.row(i));
  }
  /// Biases start at zero, where a unit whose inputs are all dead sits on its kink: moves every parameter a
  /// little.
  void move_parameters() {
    const std::vector<std::size_t> places =
        free_places(parameters.size(), [&](const double* buffer) { return block.arrays(buffer); });
    const std::vector<double> moves = normal_values(5, places.size());
    for (std::size_t i = 0; i < places.size(); ++i) parameters[places[i]] += 0.1 * moves[i];
  }

  /// f(x) (n', d') without padding.
  std::vector<double> forward() {
    static constexpr int kLabels[] = {1, 0, 2, 2, 0, 1, 0, 1, 2, 0, 2, 1, 1, 0, 0, 2};
    signals = {};
    if (inputs.rows <= static_cast<int>(std::size(kLabels))) signals.labels = kLabels;
    block.forward(pass, inputs, {parameters.data(), state.data()}, signals, *scratch, output_view());
    std::vector<double> rows;
    for (int i = 0; i < output_view().rows; ++i) {
      rows.insert(rows.end(), output_view().row(i), output_view().row(i) + block.output_dim());
    }
    return rows;
  }
  /// From ∂L/∂f (n', d') without padding `gradient` and, where asked for, `input_gradient`.
  void backward(const std::vector<double>& output_gradient, bool of_inputs = true) {
    AlignedVector<double> upstream(outputs.size());
    for (std::size_t i = 0; i < output_gradient.size(); ++i) {
      const std::size_t width = size(block.output_dim());
      upstream[i / width * size(stride()) + i % width] = output_gradient[i];
    }
    const double never_written = std::numeric_limits<double>::quiet_NaN();
    if (gradient.empty()) gradient.assign(block.block_size(), never_written);
    input_gradient.assign(entries(inputs.rows, kernels::padded(input_dim)), never_written);
    block.backward(pass, inputs, {parameters.data(), state.data()}, signals, *scratch, output_view(),
                   upstream.data(), gradient.data(), of_inputs ? input_gradient.data() : nullptr);
  }

  const Block<double>& block;
  Pass<double> pass;
  int input_dim;
  AlignedVector<double> values;
  View<double> inputs;
  AlignedVector<double> parameters;
  std::vector<double> state;
  std::unique_ptr<Scratch> scratch;
  LayerSignals<double> signals;
  AlignedVector<double> outputs, gradient, input_gradient;
};

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
