#pragma once

/// Which parameters the losses of Guo et al. 2025 (3.2) move: within one layer the balance and variance
/// losses have no gradient in the experts, and the orthogonality loss none in the router, because selections
/// are held fixed. In a stack of layers, where experts feed the router of the layer above, both do.

#include <string>

#include "analysis/theory/check.h"
#include "sim/model/model.h"

namespace moelab {

/// The gradient of a term in the parameters of `role`, by the program's backward pass and by central
/// differences of the term along a random direction: the larger, over random models of `layers` layers with
/// two active experts a row.
CheckFinding check_cross_gradient(const CheckEffort& effort, const std::string& term,
                                  ParameterGroup::Role role, int layers = 1);

}  // namespace moelab
