#pragma once

/// Theorem 1 (formally Theorem 3) of Dikkala et al. 2023. Its proof shrinks the router's weights on the
/// irrelevant Gaussian coordinates, W₂ → (1 − ε) W₂, and makes up for it with a Gaussian z independent of x
/// so that (1 − ε) W₂ x₂ + z has the distribution of W₂ x₂. The variances must add up, so Cov(z) = (1 − (1 −
/// ε)²) Cov(W₂ x₂); the paper prints the square root of that factor.

#include <functional>

#include "analysis/theory/check.h"

namespace moelab {

/// Cov(z) / Cov(W₂ x₂) at a given ε.
using ShrinkageFactor = std::function<double(double epsilon)>;

double shrinkage_factor_as_printed(double epsilon);
double shrinkage_factor(double epsilon);

/// Draws both sides and compares their variances along random directions, for several ε: the largest
/// difference in standard errors.
CheckFinding check_shrinkage(const CheckEffort& effort, const ShrinkageFactor& factor);

}  // namespace moelab
