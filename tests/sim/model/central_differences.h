#pragma once

/// Central differences of a model's loss in its parameters.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tests/sim/model/example_model.h"

namespace moelab {

/// Step of the central differences: their truncation error, step² f‴/6, is then near 1e-12.
inline constexpr double kStep = 1e-6;
/// Largest difference allowed, relative to the largest entry of the parameter group. Rounding of the loss
/// leaves ε L / step ≈ 2e-10 L in a difference, L below 100 here: 1e-6 is out of its reach for gradients of
/// order one, and far below any error of a formula.
inline constexpr double kTolerance = 1e-6;

/// The largest difference over the largest entry; zero gradients must be zero.
inline double relative_difference(const std::vector<double>& gradient,
                                  const std::vector<double>& differences) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    largest = std::max({largest, std::abs(differences[i]), std::abs(gradient[i])});
    const double difference = std::abs(gradient[i] - differences[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst > 0 ? worst / largest : 0;
}

/// One-sided differences that disagree by more than this tell of a kink within the step; of a smooth loss
/// they differ by step · f″, near 1e-5 at most.
inline constexpr double kSmooth = 1e-3;

/// A batch, and central differences of its loss in each parameter group of the model, by where the group
/// begins; padding included, which must not matter.
struct SmoothBatch {
  ExampleBatch<double> batch;
  std::map<std::size_t, std::vector<double>> differences;
};

/// Central differences where the loss is smooth around the model's parameters: no ReLU and no selection
/// changes within a step, told by one-sided differences that agree; none where it is not.
inline std::optional<std::map<std::size_t, std::vector<double>>> smooth_differences(
    ExampleModel<double>& model, const ExampleBatch<double>& batch, const TaskLoss<double>& loss) {
  const double here = model.loss_and_gradient(batch, loss);
  std::map<std::size_t, std::vector<double>> differences;
  for (const ParameterGroup& group : model.groups()) {
    for (std::size_t i = group.begin; i < group.end; ++i) {
      double& parameter = model.parameters()[i];
      const double kept = parameter;
      parameter = kept + kStep;
      const double above = model.loss_and_gradient(batch, loss);
      parameter = kept - kStep;
      const double below = model.loss_and_gradient(batch, loss);
      parameter = kept;
      if (!(std::abs((above - here) - (here - below)) / kStep < kSmooth)) return {};
      differences[group.begin].push_back((above - below) / (2 * kStep));
    }
  }
  return differences;
}

/// The first batch on which the loss is smooth. The gradient under test has no say in it.
inline SmoothBatch smooth_batch(ExampleModel<double>& model, int samples, const TaskLoss<double>& loss) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ExampleBatch<double> batch = model.batch(seed, samples);
    if (auto differences = smooth_differences(model, batch, loss))
      return {std::move(batch), std::move(*differences)};
  }
  throw std::runtime_error("every batch has a kink");
}

}  // namespace moelab
