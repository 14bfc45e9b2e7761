#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// expert_e(x) = A_e x + b_e (Dikkala et al. 2023, section 3.5). Entries of A_e start N(0, init_scale² / d),
/// b_e zero.
Kind linear_expert_kind();

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_linear_bank(const Json& spec, int input_dim, int output_dim,
                                                   int experts);

}  // namespace moelab
