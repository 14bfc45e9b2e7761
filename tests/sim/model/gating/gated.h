#pragma once

/// Rows of scores through a gating, for its tests.

#include <cmath>
#include <vector>

#include "sim/base/kernels/kernels.h"
#include "sim/base/random.h"
#include "sim/model/gating/gating.h"

namespace moelab {

/// With the gating's own parameters and state at their start. `training`: as in a training step.
struct Gated {
  static constexpr int kInputs = 3;  ///< columns of x, which are standard normal

  Gated(const GatingRule& rule, const std::vector<std::vector<double>>& rows,
        const std::vector<double>& selection_bias = {}, bool training = false, int group_rows = 0)
      : experts(static_cast<int>(rows[0].size())),
        gating(make_gating<double>(rule, {.input_dim = kInputs, .experts = experts})),
        bias(selection_bias),
        parameters(gating->block_size()),
        x(rows.size() * kInputs) {
    const std::size_t stride = size(kernels::padded(experts));
    scores.resize(rows.size() * stride);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < rows[i].size(); ++j) scores[i * stride + j] = rows[i][j];
    }
    Engine engine(9);
    for (double& value : x) value = draw_normal(engine);
    std::size_t values = 0;
    for (const StateArray& array : gating->state_arrays()) values += size(array.size());
    state.assign(values, 0.0);
    gating->start_state({{3, 0}}, state.data());
    gating->initialize({{3, 0}}, parameters.data());
    context = {scores.data(), static_cast<int>(rows.size()), experts, bias.empty() ? nullptr : bias.data(),
               parameters.data()};
    context.x = rows_of<const double>(x.data(), context.rows, kInputs);
    context.training = training;
    context.group_rows = group_rows;
    context.state = training ? state.data() : nullptr;
    gating->gate(context, scratch);
  }
  Gated(const Gated&) = delete;

  const Routing<double>& routing() const { return scratch.routing; }
  double gate(int row, int expert) const { return routing().gates[row * routing().stride + expert]; }
  double probability(int row, int expert) const {
    return scratch.probabilities[entries(row, routing().stride) + size(expert)];
  }
  /// The rows of an expert, ascending.
  std::vector<int> rows_of_expert(int expert) const {
    std::vector<int> rows;
    for (int row = 0; row < routing().rows; ++row) {
      if (gate(row, expert) > 0) rows.push_back(row);
    }
    return rows;
  }

  int experts;
  std::unique_ptr<Gating<double>> gating;
  std::vector<double> bias;
  AlignedVector<double> scores, parameters;
  std::vector<double> x, state;
  GatingContext<double> context;
  GatingScratch<double> scratch;
};

}  // namespace moelab
