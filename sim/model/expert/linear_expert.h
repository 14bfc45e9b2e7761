#pragma once

#include "sim/base/options.h"

namespace moelab {

/// expert_e(x) = A_e x + b_e (Dikkala et al. 2023, section 3.5). Entries of A_e start N(0, init_scale² / d),
/// b_e zero.
struct LinearExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

}  // namespace moelab
