#pragma once

/// Training: gradients of batches, one update a batch. The only place where a model changes.

#include <cstdint>
#include <functional>

#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/train_options.h"

namespace moelab {

enum class TrainState { done, diverged, interrupted };

struct TrainOutcome {
  TrainState state = TrainState::done;
  std::int64_t step = 0;  ///< steps done
};

/// The trainer knows no metric: it calls back with the step, and the caller looks at the model.
struct TrainCallbacks {
  /// Before the first step (0), every `record_every` steps, and after the last.
  std::function<void(std::int64_t)> record = [](std::int64_t) {};
  /// Now and then, with the share done; true abandons the run.
  std::function<bool(double)> progress = [](double) { return false; };
};

/// Trains `model` in place with `steps` batches. Ends as `diverged` at the first batch loss that is not
/// finite, or when a parameter is not finite at a record. `workspace` may be used by the callbacks too.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, BatchSource<Real>& batches,
                   std::int64_t steps, const TrainOptions& options, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace);

/// The same with mini-batches of a training set.
template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, const TrainingSet<Real>& data,
                   const TrainOptions& options, const Seeds& seeds, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace);

}  // namespace moelab
