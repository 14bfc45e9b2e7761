#pragma once

/// Gaussian noise on test inputs.

#include <vector>

#include "sim/base/options.h"

namespace moelab {

/// x + N(0, diag(deviations²)).
struct NoiseOptions {
  std::vector<double> deviations = {};  ///< one, or one for each input column (d)

  void bind(Fields& fields);
};

}  // namespace moelab
