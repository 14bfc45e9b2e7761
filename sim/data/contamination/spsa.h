#pragma once

/// Projected steps along gradients that are estimated from losses alone (Uesato et al. 2018).

#include <optional>

#include "sim/base/options.h"

namespace moelab {

/// pgd with Σ_v v (ℓ(x + δv) − ℓ(x − δv)) over random signs v in place of ∂L/∂x, sample by sample.
struct SpsaOptions {
  double budget = 0;  ///< largest change of an input entry, ε
  int steps = 10;
  std::optional<double> step_size = std::nullopt;  ///< none: 2.5 ε / steps, of a single step ε
  int directions = 32;                             ///< signs v of a step
  double difference = 0.01;                        ///< δ

  void bind(Fields& fields);
};

}  // namespace moelab
