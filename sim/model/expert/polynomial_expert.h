#pragma once

#include "sim/base/options.h"

namespace moelab {

/// expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al., Statistical Advantages of Perturbing
/// Cosine Router, Table 1). For an even power (A_e, b_e) and (−A_e, −b_e) are the same expert. Entries of A_e
/// start N(0, init_scale² / d), b_e zero.
struct PolynomialExpertOptions {
  double init_scale = 1.0;
  int power = 2;
  void bind(Fields& fields);
};

}  // namespace moelab
