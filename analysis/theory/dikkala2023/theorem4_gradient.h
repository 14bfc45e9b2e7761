#pragma once

/// The population gradient that the checks of Theorem 4 (Dikkala et al. 2023) descend on, against its
/// definition L = E_{x ∈ G}‖(2p − 1)u − v‖² + E_{x ∈ G'}‖(2p − 1)u + v‖², p = sigmoid(wᵀx).

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023/two_component_descent.h"

namespace moelab {

/// The largest deviation from the mean of sampled gradients over points (w, u) and coordinates, in standard
/// errors. Both components are sampled by rejection, independently of the quadrature's density.
CheckFinding check_gradient_by_sampling(const CheckEffort& effort,
                                        const TwoComponentRule& rule = exact_gradient);

/// The largest deviation from central differences of TwoComponentPopulation::loss.
CheckFinding check_gradient_by_differences(const CheckEffort& effort,
                                           const TwoComponentRule& rule = exact_gradient);

}  // namespace moelab
