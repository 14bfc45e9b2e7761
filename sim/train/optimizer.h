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

  /// Whether a part of the group may be updated on its own, and its zero-gradient steps later and all at
  /// once, to the same bits: then step_part and idle_steps may be called in place of step.
  virtual bool can_defer() const { return false; }
  /// One update of the entries [begin, begin + count) of the group; pointers are to the group's start.
  virtual void step_part(double learning_rate, double weight_decay, const Real* gradient, Real* parameters,
                         std::size_t begin, std::size_t count);
  /// `steps` updates of those entries with a zero gradient, at rates[0], rates[1], …
  virtual void idle_steps(const Real* rates, int steps, double weight_decay, Real* parameters,
                          std::size_t begin, std::size_t count);
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
