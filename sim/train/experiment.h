#pragma once

/// Data, model, loss and training together: what one cell of a scenario runs, without its metrics.

#include <memory>

#include "sim/data/problem.h"
#include "sim/train/least_squares.h"
#include "sim/train/trainer.h"

namespace moelab {

struct ExperimentOptions {
  DataOptions data = {};
  ModelOptions model = {};
  LossOptions loss = {};
  TrainOptions train = {};
};

/// What the parts cannot be together. Throws InvalidOption at the path of the option, as a scenario names it.
void check(const ExperimentOptions& options);

/// The first `samples` of a training set, in the precision of training.
template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples);

/// Runs to its end on the calling thread. A C++ program and a scenario that say the same give the same
/// numbers.
template <class Real>
class Experiment {
 public:
  /// Checks the options, draws the problem and the model's starting values.
  Experiment(ExperimentOptions options, const Seeds& seeds);

  const ExperimentOptions& options() const { return options_; }
  const Problem& problem() const { return *problem_; }
  const Model<Real>& model() const { return model_; }
  const Objective<Real>& objective() const { return objective_; }
  Workspace<Real>& workspace() { return workspace_; }
  /// Of a least-squares fit, after train().
  const FitOutcome& fit() const { return fit_; }

  TrainOutcome train(const TrainCallbacks& callbacks = {});

 private:
  ExperimentOptions options_;
  Seeds seeds_;
  std::unique_ptr<Problem> problem_;
  Model<Real> model_;
  std::unique_ptr<TaskLoss<Real>> task_loss_;
  Objective<Real> objective_;
  Workspace<Real> workspace_;
  FitOutcome fit_;
};

}  // namespace moelab
