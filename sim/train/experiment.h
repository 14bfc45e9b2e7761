#pragma once

/// Data, model, loss and training together: what one cell of a scenario runs, without its metrics.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/data/problem.h"
#include "sim/train/least_squares.h"
#include "sim/train/train_options.h"
#include "sim/train/trainer.h"

namespace moelab {

/// One of several trainings of a model, each from where the one before ended.
struct PhaseOptions {
  std::string name = {};
  DataOptions data = {};
  LossOptions loss = {};
  TrainOptions train = {};
  Learns learns = {};
  bool keep_optimizer = false;  ///< moments of the phase before; otherwise they start anew
};

struct ExperimentOptions {
  DataOptions data = {};
  ModelOptions model = {};
  LossOptions loss = {};
  TrainOptions train = {};
  std::vector<PhaseOptions> phases = {};  ///< in place of one training by the members above; or none
};

/// What the parts cannot be together. Throws InvalidOption at the path of the option, as a scenario names it.
void check(const ExperimentOptions& options);

/// The part of it that does not look at the data: model and training, each for itself and together.
void check_training(const ExperimentOptions& options);

/// The first `samples` of a training set, in the precision of training; `stream` as train_stream() has it,
/// `with_labels` with the true clusters of its rows.
template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples,
                                    std::uint64_t stream = 0, bool with_labels = false);

/// The masks of a task that has them, on data of that layout.
TokenMasks masks_of(const LossOptions& options, const Layout& layout);

/// Runs to its end on the calling thread. A C++ program and a scenario that say the same give the same
/// numbers.
///
/// With phases it stands in one of them, at first in the first: options(), problem() and objective() are its
/// own, the model is that of all. Each phase draws its problem, training set and rules from the same streams,
/// so that equal data are the same data, and has an order of batches of its own. What a training step changes
/// beside the parameters (selection biases, statistics) goes on changing whatever learns.
template <class Real>
class Experiment {
 public:
  /// Checks the options, draws the problem and the model's starting values.
  Experiment(ExperimentOptions options, const Seeds& seeds);
  /// On a problem of the caller's own: of `options.data` only train_samples is looked at, and the caller sees
  /// to it that model, loss and data go together. Throws InvalidOption as check_training() does.
  Experiment(ExperimentOptions options, std::unique_ptr<Problem> problem, const Seeds& seeds);

  const ExperimentOptions& options() const { return options_; }
  const Problem& problem() const { return *problem_; }
  const Model<Real>& model() const { return model_; }
  const Objective<Real>& objective() const { return *objective_; }
  Workspace<Real>& workspace() { return workspace_; }
  /// Of a least-squares fit, after train().
  const FitOutcome& fit() const { return fit_; }

  /// Trains, with phases the one at hand; steps are counted through.
  TrainOutcome train(const TrainCallbacks& callbacks = {});
  /// Goes on to the next phase, if there is one; what problem() and objective() gave is no longer there.
  /// Throws InvalidOption where its data are not laid out as those before.
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

// The parts of check(TrainOptions), between which an experiment checks what concerns its data and model.

/// Fits have no rate and no batches, and work in double; optimizers have a rate and no start.
void check_rule(const TrainOptions& options);

/// Sample gradients have batches, population gradients a rule. Messages name the gradient by gradient_name().
void check_batches(const TrainOptions& options);
void check_epochs(const TrainOptions& options);

/// Steps or epochs.
void check_length(const TrainOptions& options);

/// `"sample"` or `"population"`, quoted.
const char* gradient_name(const TrainOptions& options);

}  // namespace moelab
