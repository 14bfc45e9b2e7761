#pragma once

/// A single block: its passes on given rows.

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/base/arrays.h"
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

}  // namespace moelab
