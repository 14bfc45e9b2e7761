#include "sim/train/gradient_error.h"

#include <cmath>

namespace moelab {

template <class Real>
GradientError population_gradient_error(const Model<Real>& model, const Objective<Real>& objective,
                                        const Problem& problem, const TrainOptions& options,
                                        const Seeds& seeds, std::uint64_t moment,
                                        Workspace<Real>& workspace) {
  const std::size_t size = model.parameters.size();
  std::vector<double> mean(size, 0.0), squares(size, 0.0);  // Welford's recursion, entry by entry
  for (int rule = 0; rule < kGradientRules; ++rule) {
    // Stream 0 trains.
    const std::uint64_t stream = 1 + moment * kGradientRules + static_cast<std::uint64_t>(rule);
    PopulationBatches<Real> batches(problem, options, seeds, stream, objective.masks);
    const int points = batches.advance();
    loss_and_gradient(model, objective, batches.samples(), batches.y(), points, workspace);
    for (const ParameterGroup& group : model.network->groups()) {
      for (std::size_t j = group.begin; j < group.end && group.trainable; ++j) {
        const double value = static_cast<double>(workspace.gradient[j]);
        const double step = value - mean[j];
        mean[j] += step / (rule + 1);
        squares[j] += step * (value - mean[j]);
      }
    }
  }
  GradientError error;
  for (std::size_t j = 0; j < size; ++j) {
    error.norm += mean[j] * mean[j];
    error.standard_error += squares[j] / (kGradientRules - 1);
  }
  error.norm = std::sqrt(error.norm);
  error.standard_error = std::sqrt(error.standard_error);
  return error;
}

template GradientError population_gradient_error(const Model<float>&, const Objective<float>&, const Problem&,
                                                 const TrainOptions&, const Seeds&, std::uint64_t,
                                                 Workspace<float>&);
template GradientError population_gradient_error(const Model<double>&, const Objective<double>&,
                                                 const Problem&, const TrainOptions&, const Seeds&,
                                                 std::uint64_t, Workspace<double>&);

}  // namespace moelab
