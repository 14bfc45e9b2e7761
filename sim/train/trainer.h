#pragma once

/// Training by one update per batch. Only this code changes a model.

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
  std::int64_t step = 0;  ///< steps done, including earlier phases
  bool stopped = false;   ///< whether TrainCallbacks::stop ended training before the last step
};

/// The groups of parameters that learn in a phase. A frozen router learns in none.
struct Learns {
  bool router = true;
  bool experts = true;  ///< experts of mixtures, and dense networks
  bool layers = true;   ///< attention, projection and read-out
  /// Parts of the experts that learn if `experts` do not: the weights of the first layer, the last layer.
  bool first_layers = false, read_outs = false;

  /// Whether parts of the experts learn, and the rest of them is frozen.
  bool has_frozen_parts() const { return !experts && (first_layers || read_outs); }
};

/// The places of the experts' parameters that do not learn in a phase in which parts of experts do.
template <class Real>
std::vector<std::size_t> frozen_places(const Network<Real>& network, const Learns& learns);

/// The position of a phase in a sequence of phases.
template <class Real>
struct PhaseCourse {
  int phase = 0;           ///< the first phase records its start; each phase has its own order of batches
  std::int64_t steps = 0;  ///< steps of earlier phases
  Learns learns = {};
  int tasks = 0;  ///< true clusters of the data, from which train.rounds chooses
  /// The optimizer of each group of parameters, with its moments; null if the group has not learned yet.
  std::vector<std::unique_ptr<Optimizer<Real>>> optimizers = {};
};

/// A round of tasks in sequence.
struct FinishedRound {
  std::int64_t step = 0;  ///< steps done, including earlier phases
  int task = 0;
  int expert = 0;  ///< the expert of the first mixture that computed the most rows of its last batch
};

/// Callbacks of the trainer. The trainer knows no metrics. It passes the step, and the caller measures the
/// model.
struct TrainCallbacks {
  /// Called before the first step (0), every `record_every` steps, and after the last.
  std::function<void(std::int64_t)> record = [](std::int64_t) {};
  /// Called from time to time with the share of steps done; true interrupts the run.
  std::function<bool(double)> progress = [](double) { return false; };
  /// Called after every record; true ends the training there, as `done`.
  std::function<bool(std::int64_t)> stop = [](std::int64_t) { return false; };
  /// Called after the last step of every round (train.rounds).
  std::function<void(const FinishedRound&)> round = [](const FinishedRound&) {};
};

/// Trains `model` in place with `steps` batches.
///
/// Ends as `diverged` at the first batch loss that is not finite, or if a parameter is not finite at a
/// record. Callbacks may also use `workspace`. Schedules and progress depend on `steps`. The steps of
/// callbacks and outcome include the earlier steps in `course`.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, BatchSource<Real>& batches,
                   std::int64_t steps, const TrainOptions& options, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace, PhaseCourse<Real>& course);

/// Trains with mini-batches of a training set.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, const TrainingSet<Real>& data,
                   const TrainOptions& options, const Seeds& seeds, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace, PhaseCourse<Real>& course);

/// Both functions for training with a single phase.
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
