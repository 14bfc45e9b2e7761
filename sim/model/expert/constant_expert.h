#pragma once

#include "sim/base/options.h"

namespace moelab {

/// expert_e(x) = u_e in R^o (Dikkala et al. 2023, section 3.1). u_e starts N(0, init_scale² I).
struct ConstantExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

}  // namespace moelab
