#pragma once

/// Projected gradient steps (Madry et al. 2018).

#include <optional>

#include "sim/base/options.h"

namespace moelab {

/// Repeated steps along sign(∂L/∂x), kept within ε of x entry by entry.
struct PgdOptions {
  double budget = 0;  ///< largest change of an input entry, ε
  int steps = 10;
  std::optional<double> step_size = std::nullopt;  ///< none: 2.5 ε / steps, of a single step ε

  void bind(Fields& fields);
};

}  // namespace moelab
