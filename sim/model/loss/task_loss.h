#pragma once

/// The axis of task losses.

#include <memory>
#include <string>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// A loss on a batch of outputs. The optimised value sums over outputs and averages over rows.
template <class Real>
class TaskLoss {
 public:
  virtual ~TaskLoss() = default;
  /// L = (1/n) Σ_i ℓ(f_i, y_i) for outputs f (n, padded(o)) and targets y (n, o). Writes ∂L/∂f (n, padded(o),
  /// padding zero) and returns L.
  virtual double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                                    Real* output_gradient) const = 0;
};

template <class Real>
using MakeTaskLoss = std::unique_ptr<TaskLoss<Real>>();

/// An entry of the table of task losses.
struct TaskLossKind {
  std::string name;
  std::string help;
  PerPrecision<MakeTaskLoss> make = {};  ///< null for a loss of ids alone
  bool needs_classes = false;            ///< targets are indicators (or probabilities) of classes
  /// The loss for targets (n, 1) that are ids of the outputs to be largest; null where there is none.
  PerPrecision<MakeTaskLoss> make_of_ids = {};
  bool masks_tokens = false;  ///< of ids that stood where the inputs are masked (sim/data/problem.h)
};

/// What makes a loss class `Made<Real>`.
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

/// The table: adding a loss is a new file and a line in task_losses.cpp.
const std::vector<TaskLossKind>& task_loss_kinds();
void add_task_loss_kind(TaskLossKind kind);
std::vector<std::string> task_loss_names();

/// Throws InvalidOption at "loss.task" for an unknown name.
const TaskLossKind& task_loss_kind(const std::string& name);
/// For targets that are no ids, which the loss must have a form for.
template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const std::string& name) {
  return task_loss_kind(name).make.of<Real>()();
}

}  // namespace moelab
