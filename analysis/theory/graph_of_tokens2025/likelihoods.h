#pragma once

/// The posterior of Lemma 1 of Nguyen et al. 2025 where densities underflow: σ = 1e-3 and centres at a
/// distance of 1e3, so that log N(u; c, σ² I) is near −5e11.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025/token_graph.h"

namespace moelab {

/// log of A_j N(u; c_j, σ² I) over its sum, (m), from log A (m) and centres (m, d).
using PositionPosterior =
    std::function<Vector(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma)>;
Vector log_space_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma);

/// Products of densities as the lemma prints them.
Vector product_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma);

/// The share of rows that are probabilities: finite, with sum 1.
CheckFinding check_proper(const CheckEffort& effort, const PositionPosterior& rule);

/// Centres within 1e-9 of one another, so that all of them keep some mass: the largest difference to sums of
/// squares in long double.
CheckFinding check_precise(const CheckEffort& effort, const PositionPosterior& rule = log_space_posterior);

}  // namespace moelab
