#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al., Statistical Advantages of Perturbing
/// Cosine Router, Table 1). For an even power (A_e, b_e) and (−A_e, −b_e) are the same expert.
Kind polynomial_expert_kind();

/// expert_e(x) = (A_e x + b_e)_+, one neuron for each output. The slides' theory has experts of the form
/// φ(a^T x + b), whose slope and intercept are identified; "mlp" of depth 2 has a further layer, and with it
/// scales and an order of the neurons that data cannot tell.
Kind relu_expert_kind();

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_polynomial_bank(const Json& spec, int input_dim, int output_dim,
                                                       int experts);
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_relu_bank(const Json& spec, int input_dim, int output_dim,
                                                 int experts);

}  // namespace moelab
