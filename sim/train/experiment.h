#pragma once

/// An experiment: data, model, loss and training. One cell of a scenario runs one experiment; metrics are
/// separate.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/data/problem.h"
#include "sim/train/least_squares.h"
#include "sim/train/train_options.h"
#include "sim/train/trainer.h"

namespace moelab {

/// One of several trainings of a model. Each phase starts at the end of the previous phase.
struct PhaseOptions {
  std::string name = {};
  DataOptions data = {};
  LossOptions loss = {};
  TrainOptions train = {};
  Learns learns = {};
  bool keep_optimizer = false;  ///< keeps the optimizer's moments of the previous phase
};

struct ExperimentOptions {
  DataOptions data = {};
  ModelOptions model = {};
  LossOptions loss = {};
  TrainOptions train = {};
  std::vector<PhaseOptions> phases =
      {};  ///< replace the training with `data`, `loss` and `train`; may be empty
};

/// Checks the options and their combinations. Throws InvalidOption at the path that a scenario uses.
void check(const ExperimentOptions& options);

/// The checks of model and training that do not depend on the data.
void check_training(const ExperimentOptions& options);

/// Draws the first `samples` samples of a training set, in the precision of training. `stream` is
/// train_stream(). `with_labels` adds the true clusters of the rows.
template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples,
                                    std::uint64_t stream = 0, bool with_labels = false);

/// The masks of the task on data with this layout; none if the task has no masks.
TokenMasks masks_of(const LossOptions& options, const Layout& layout);

/// A training run on the calling thread. A C++ program and a scenario with equal options give equal numbers.
///
/// An experiment with phases starts in the first phase. options(), problem() and objective() refer to the
/// current phase. All phases share the model. Each phase draws its problem, training set and rules from the
/// same streams, so equal options give equal data. Each phase has its own order of batches. The state
/// (selection biases, statistics) changes in every phase, whichever parameters learn.
template <class Real>
class Experiment {
 public:
  /// Checks the options. Draws the problem and the model's starting values.
  Experiment(ExperimentOptions options, const Seeds& seeds);
  /// Uses the caller's problem. It reads only train_samples of `options.data`. The caller ensures that model,
  /// loss and data fit together. Throws InvalidOption in the same cases as check_training().
  Experiment(ExperimentOptions options, std::unique_ptr<Problem> problem, const Seeds& seeds);

  const ExperimentOptions& options() const { return options_; }
  const Problem& problem() const { return *problem_; }
  const Model<Real>& model() const { return model_; }
  const Objective<Real>& objective() const { return *objective_; }
  Workspace<Real>& workspace() { return workspace_; }
  /// The outcome of a least-squares fit, after train().
  const FitOutcome& fit() const { return fit_; }

  /// Trains the current phase. Steps count through all phases.
  TrainOutcome train(const TrainCallbacks& callbacks = {});
  /// Moves to the next phase; returns false if there is none. References from problem() and objective()
  /// become invalid. Throws InvalidOption if the new data have another layout.
  bool next_phase();

 private:
  ExperimentOptions options_;
  Seeds seeds_;
  std::unique_ptr<Problem> problem_;
  Model<Real> model_;
  std::unique_ptr<TaskLoss<Real>> task_loss_;
  std::optional<Objective<Real>> objective_;
  PhaseCourse<Real> course_;
  Workspace<Real> workspace_;
  FitOutcome fit_;
};

// The parts of check(TrainOptions). An experiment checks its data and model between them.

/// Fits have no learning rate and no batches, and use double precision. Optimizers have a learning rate and
/// no start.
void check_rule(const TrainOptions& options);

/// Sample gradients need batches, and population gradients need a rule. Messages name the gradient by
/// gradient_name().
void check_batches(const TrainOptions& options);
void check_epochs(const TrainOptions& options);

/// Training needs either steps or epochs.
void check_length(const TrainOptions& options);

/// The gradient's name in quotes: `"sample"` or `"population"`.
const char* gradient_name(const TrainOptions& options);

}  // namespace moelab
