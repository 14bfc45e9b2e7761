#pragma once

/// Steps along the signs of a gradient within an l∞ budget: what the attacks fgsm, pgd and spsa share.

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/base/options.h"

namespace moelab {

/// The fields of attacks that repeat a step.
inline void bind_steps(Fields& fields, double& budget, int& steps, std::optional<double>& step_size) {
  fields.required().add("budget", budget, at_least(0), "largest change of an input entry, ε");
  fields.add("steps", steps, between(1, 1e6), "steps");
  fields.add("step_size", step_size, positive(), "change of an entry in a step (default 2.5 ε / steps)");
}

/// The change of an entry in a step where none is given: 2.5 ε / steps, or ε in a single step.
inline double default_step_size(double budget, int steps) {
  return steps > 1 ? 2.5 * budget / steps : budget;
}

/// x ← clamp(x + step_size · sign(g(x)), clean − ε, clean + ε) `steps` times, clean the x that is given and
/// ε the budget; `gradient_at(x, g)` writes a gradient g of the length of x.
template <class Real, class Gradient>
void ascend(std::vector<Real>& x, double budget, int steps, double step_size, const Gradient& gradient_at) {
  const std::vector<Real> clean = x;
  const Real largest = static_cast<Real>(budget);
  std::vector<Real> gradient;
  for (int step = 0; step < steps; ++step) {
    gradient_at(x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Real sign = gradient[i] > 0 ? Real(1) : gradient[i] < 0 ? Real(-1) : Real(0);
      x[i] = std::clamp(x[i] + static_cast<Real>(step_size) * sign, clean[i] - largest, clean[i] + largest);
    }
  }
}

}  // namespace moelab
