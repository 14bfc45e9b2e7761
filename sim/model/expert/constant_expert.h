#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// expert_e(x) = u_e in R^o (Dikkala et al. 2023, section 3.1). u_e starts N(0, init_scale² I).
Kind constant_expert_kind();

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_constant_bank(const Json& spec, int input_dim, int output_dim,
                                                     int experts);

}  // namespace moelab
