#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// expert_e(x) = MLP_e(x), ReLU hidden layers, biases (Dikkala et al. 2023, section 3.1: depth 3, width 96).
Kind mlp_expert_kind();

/// expert_e(x) = A_e x + b_e.
Kind linear_expert_kind();

/// Serves `mlp` and `linear` (an MLP of depth 1).
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const Json& spec, int input_dim, int output_dim, int experts);

}  // namespace moelab
