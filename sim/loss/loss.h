#pragma once

/// The axis of losses.

#include <memory>
#include <string>
#include <vector>

#include "sim/base/schema.h"

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

/// `mse`: ℓ = ‖f − y‖². `cross_entropy`: ℓ = −Σ_j y_j log softmax(f)_j in nats, y the indicator of a class or
/// any other probabilities; from the log-sum-exp of f, finite for all finite f.
const std::vector<Kind>& task_loss_kinds();
std::vector<std::string> task_loss_names();

template <class Real>
std::unique_ptr<TaskLoss<Real>> make_task_loss(const std::string& name);

}  // namespace moelab
