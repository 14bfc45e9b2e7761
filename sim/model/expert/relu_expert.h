#pragma once

#include "sim/base/options.h"

namespace moelab {

/// expert_e(x) = (A_e x + b_e)_+, one neuron for each output. The slides' theory has experts of the form
/// φ(a^T x + b), whose slope and intercept are identified; "mlp" of depth 2 has a further layer, and with it
/// scales and an order of the neurons that data cannot tell. Entries of A_e start N(0, init_scale² / d), b_e
/// zero.
struct ReluExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

}  // namespace moelab
