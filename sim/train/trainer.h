#pragma once

/// Training: gradients of batches, one update a batch. The only place where a model changes.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/train_options.h"

namespace moelab {

enum class TrainState { done, diverged, interrupted };

struct TrainOutcome {
  TrainState state = TrainState::done;
  std::int64_t step = 0;  ///< steps done, those of earlier phases included
  bool stopped = false;   ///< by TrainCallbacks::stop, before the last step
};

/// Which groups of parameters learn in a phase; a frozen router does not in any.
struct Learns {
  bool router = true;
  bool experts = true;  ///< of mixtures, and dense networks
  bool layers = true;   ///< attention, projection, read-out
};

/// Where a phase of training stands in a sequence of them.
template <class Real>
struct PhaseCourse {
  int phase = 0;           ///< the first records its start, and each has its own order of batches
  std::int64_t steps = 0;  ///< of the phases before
  Learns learns = {};
  /// Of each group of parameters with its moments; null where it has not learned yet. What is here goes on.
  std::vector<std::unique_ptr<Optimizer<Real>>> optimizers = {};
};

/// The trainer knows no metric: it calls back with the step, and the caller looks at the model.
struct TrainCallbacks {
  /// Before the first step (0), every `record_every` steps, and after the last.
  std::function<void(std::int64_t)> record = [](std::int64_t) {};
  /// Now and then, with the share done; true abandons the run.
  std::function<bool(double)> progress = [](double) { return false; };
  /// After every record; true ends the training there, as `done`.
  std::function<bool(std::int64_t)> stop = [](std::int64_t) { return false; };
};

/// Trains `model` in place with `steps` batches. Ends as `diverged` at the first batch loss that is not
/// finite, or when a parameter is not finite at a record. `workspace` may be used by the callbacks too.
/// Schedules and progress go by `steps`; the callbacks' steps, and those of the outcome, count from `course`
/// on.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, BatchSource<Real>& batches,
                   std::int64_t steps, const TrainOptions& options, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace, PhaseCourse<Real>& course);

/// The same with mini-batches of a training set.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, const TrainingSet<Real>& data,
                   const TrainOptions& options, const Seeds& seeds, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace, PhaseCourse<Real>& course);

/// Both as the only phase.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, BatchSource<Real>& batches,
                   std::int64_t steps, const TrainOptions& options, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace) {
  PhaseCourse<Real> course;
  return train(model, objective, batches, steps, options, callbacks, workspace, course);
}
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, const TrainingSet<Real>& data,
                   const TrainOptions& options, const Seeds& seeds, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace) {
  PhaseCourse<Real> course;
  return train(model, objective, data, options, seeds, callbacks, workspace, course);
}

}  // namespace moelab
