#pragma once

/// Regression on a softmax-gated mixture of experts with a known mixing measure (Nguyen et al., Statistical
/// Advantages of Perturbing Cosine Router in Mixture of Experts).

#include "sim/data/problem.h"

namespace moelab {

/// Y = f_{G*}(X) + ε,  ε ~ N(0, noise_std²),  X ~ N(0, I_dim) or uniform on [−half_width, half_width]^dim,
/// f_{G*} as in sim/data/mixing_measure.h. The true measure G* is
///   `given`  by its parameters, the same for every seed: the theory's rates are those of one fixed G*;
///   `drawn`  anew for every seed: entries of β1_j ~ N(0, gate_std²), β0_j ~ N(0, bias_std²), entries of a_j
///            ~ N(0, slope_std²), b_j ~ N(0, intercept_std²), each component from its own stream.
/// A sample's label is its likeliest component, argmax_j γ_j(x). E[y | x] = f_{G*}(x).
const Kind& moe_regression_kind();

/// Throws UserError at "data.measure" unless the arrays of a given measure fit each other and data.dim.
void check_moe_regression(const Json& data);

std::unique_ptr<Problem> draw_moe_regression(const Json& data, const Seeds& seeds);

}  // namespace moelab
