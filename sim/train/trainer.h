#pragma once

/// Training: gradients of batches, one update a batch.

#include <cstdint>
#include <functional>

#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/optimizer.h"

namespace moelab {

enum class TrainState { done, diverged, interrupted };

struct TrainOutcome {
  TrainState state = TrainState::done;
  std::int64_t step = 0;  ///< steps done
};

/// The trainer knows no metric: it calls back with the step, and the caller looks at the model.
struct TrainCallbacks {
  /// Before the first step (0), every `record_every` steps, and after the last.
  std::function<void(std::int64_t)> record;
  /// Now and then, with the share done; true abandons the run.
  std::function<bool(double)> progress;
};

/// Optimizer steps that a resolved `train` object asks for: `steps`, or epochs · ⌈n / batch_size⌉.
std::int64_t total_steps(const Json& train, int train_samples);

/// Steps between records: `record_every`, or a tenth of the run.
std::int64_t record_interval(const Json& train, std::int64_t steps);

/// Trains `model` in place by a resolved `train` object with `steps` batches. Ends as `diverged` at the first
/// batch loss that is not finite, or when a parameter is not finite at a record.
template <class Real>
TrainOutcome train(Model<Real>& model, const TaskLoss<Real>& loss, BatchSource<Real>& batches,
                   std::int64_t steps, const Json& train, const TrainCallbacks& callbacks);

/// The same with mini-batches of a training set.
template <class Real>
TrainOutcome train(Model<Real>& model, const TaskLoss<Real>& loss, const TrainingSet<Real>& data,
                   const Json& spec, const Seeds& seeds, const TrainCallbacks& callbacks);

}  // namespace moelab
