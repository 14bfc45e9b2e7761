#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// expert_e(x) = MLP_e(x), ReLU hidden layers, biases (Dikkala et al. 2023, section 3.1: depth 3, width 96).
Kind mlp_expert_kind();

/// A bank of MLPs; a spec without "depth" (a linear expert of many outputs) is one of depth 1.
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const Json& spec, int input_dim, int output_dim, int experts);

}  // namespace moelab
