#pragma once

/// Optimizers and learning-rate schedules.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/schema.h"

namespace moelab {

std::vector<Kind> optimizer_kinds();
std::vector<Kind> schedule_kinds();

/// An update rule with its state, for one contiguous group of parameters.
template <class Real>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update of the group with the given rate and weight decay. Same rules as PyTorch's SGD, Adam and
  /// AdamW.
  virtual void step(double learning_rate, double weight_decay, const Real* gradient, Real* parameters) = 0;
};

/// An optimizer for `count` parameters (a multiple of kernels::kPadding), from a resolved `train.optimizer`
/// object.
template <class Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const Json& spec, std::size_t count);

/// Whether skipping tiny gates is harmless by default: Adam divides gradients by their own size, so it is
/// not.
bool rescales_gradients(const Json& optimizer_spec);

/// The factor on the learning rate at `step` of `total` (0-based):
/// constant 1; step factor^⌊step / every⌋; cosine final + (1 − final) (1 + cos(π step / total)) / 2.
double schedule_factor(const Json& spec, std::int64_t step, std::int64_t total);

}  // namespace moelab
