#pragma once

/// The fast gradient sign method (Goodfellow et al. 2015).

#include "sim/base/options.h"

namespace moelab {

/// x + ε sign(∂L/∂x).
struct FgsmOptions {
  double budget = 0;  ///< largest change of an input entry, ε

  void bind(Fields& fields);
};

}  // namespace moelab
