#pragma once

/// The axis of task losses.

#include <memory>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"

namespace moelab {

/// A loss on a batch of outputs. The optimised value sums over outputs and averages over rows.
template <class Real>
class TaskLoss {
 public:
  virtual ~TaskLoss() = default;
  /// Returns L = (1/n) Σ_i ℓ(f_i, y_i) for outputs f (n, padded(o)) and targets y (n, o). Writes ∂L/∂f (n,
  /// padded(o), padding zero).
  virtual double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                                    Real* output_gradient) const = 0;
};

template <class Real>
using MakeTaskLoss = std::unique_ptr<TaskLoss<Real>>();

/// An entry of the table of task losses.
struct TaskLossKind {
  std::string name;
  std::string help;
  PerPrecision<MakeTaskLoss> make = {};  ///< null for a loss on ids only
  bool needs_classes = false;            ///< targets are indicators (or probabilities) of classes
  /// The loss for targets (n, 1) that are ids of the correct output; null if there is none.
  PerPrecision<MakeTaskLoss> make_of_ids = {};
  bool of_softmax = false;    ///< the loss is the cross-entropy of softmax(f) in place of f
  bool masks_tokens = false;  ///< targets are the ids at masked places of the inputs (sim/data/problem.h)
};

/// Functions that make a loss class `Made<Real>`.
template <template <class> class Made>
PerPrecision<MakeTaskLoss> task_loss_maker() {
  return {[]() -> std::unique_ptr<TaskLoss<float>> { return std::make_unique<Made<float>>(); },
          []() -> std::unique_ptr<TaskLoss<double>> { return std::make_unique<Made<double>>(); }};
}

/// The entry of a loss class `Made<Real>`.
template <template <class> class Made>
TaskLossKind task_loss(std::string name, std::string help) {
  return {std::move(name), std::move(help), task_loss_maker<Made>()};
}

/// The table of task losses. A new loss is one file and one line in task_loss.cpp.
struct TaskLossAxis {
  using Entry = TaskLossKind;
  static const std::vector<TaskLossKind>& table();
};
inline const std::vector<TaskLossKind>& task_loss_kinds() {
  return TaskLossAxis::table();
}
std::vector<std::string> task_loss_names();

/// The entry of a task loss. Throws InvalidOption at "loss.task" for an unknown name.
const TaskLossKind& task_loss_kind(const std::string& name);
/// Makes a loss for targets that are not ids. The loss must have this form.
template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const std::string& name) {
  return task_loss_kind(name).make.of<Real>()();
}

}  // namespace moelab
