#pragma once

/// Checks of Chowdhury et al. 2023 (Patch-level Routing in Mixture-of-Experts is Provably Sample-efficient
/// for Convolutional Neural Networks): the routers of separate training.

#include "analysis/theory/check.h"

namespace moelab {

// Stage 1 minimises −y (θ_1 − θ_2)·Σ_j x^(j), which is linear. So SGD with a constant rate ends at
// θ_1 = θ_1(0) + c Σ_i y_i Σ_j x_i^(j), and θ_2 the same with a minus, in any order of samples, with
// c = rate · epochs / batch.

/// Trains routers by the program (loss class_scores) in float. Measures the relative difference of their
/// changes from the closed form, with c times `factor`.
CheckFinding check_router_form(const CheckEffort& effort, double factor = 1);

// In expectation θ_1 − θ_1(0) = (c N / 2)(o_1 − o_2), because the other patches do not depend on y.

/// Measures the largest deviation of the mean of y Σ_j x^(j) from `share` · (o_1 − o_2), in standard errors.
CheckFinding check_mean_router(const CheckEffort& effort, double share = 0.5);

}  // namespace moelab
