#pragma once

/// The point estimate of Nguyen et al. 2025, Eq. 11: MoE(E[u_i | X]) for E[MoE(u_i) | X], u_i of MAM.
///
/// u_i is a mixture of H s Gaussians of variance σ² around the centres W_h^T x_j. Its noise alone adds
/// (σ²/2) Σ_hj (A_h[i, j]/H) ΔMoE(W_h^T x_j) + O(σ⁴) to E[MoE(u_i) | X]; the spread of the centres, which has
/// no σ, leaves a gap that does not vanish with σ.

#include <functional>

#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025/token_graph.h"

namespace moelab {

/// Σ_k ∂²MoE/∂u_k², (o), by central differences; relative error about 1e-6.
Vector output_laplacian(const TokenMixture& mixture, const Vector& token);
using LaplacianRule = std::function<Vector(const TokenMixture& mixture, const Vector& token)>;

/// What the noise adds to E[MoE(u_i) | X] at σ = 0.01, divided by σ²/2, against the Laplacian at the centres:
/// largest deviation in standard errors.
CheckFinding check_noise_gap(const CheckEffort& effort, const LaplacianRule& laplacian = output_laplacian);

/// The gap ‖E[MoE(u_i) | X] − MoE(MHA(X)_i)‖ at σ = 0, relative to ‖E[MoE(u_i) | X]‖, both root mean squares
/// over tokens and problems; the gap at σ = 0.1, 1, 2 and √d beside it.
CheckFinding check_point_estimate(const CheckEffort& effort);

}  // namespace moelab
