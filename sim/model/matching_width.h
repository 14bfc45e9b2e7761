#pragma once

#include "sim/model/expert/mlp_expert.h"

namespace moelab {

/// Gives a network of its depth the width at which its parameters are nearest to `target` (the smaller of
/// two). At depth 1 there is no width.
void set_matching_width(MlpExpertOptions& network, int input_dim, int output_dim, std::size_t target);

}  // namespace moelab
