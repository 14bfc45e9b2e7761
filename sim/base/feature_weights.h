#pragma once

/// Weights of features from the dispersions s_q ≥ 0, q = 1 … d, of one cluster (Nielsen et al. 2025): a
/// feature counts the more the tighter the cluster is on it. Where a dispersion is not finite all weights are
/// NaN, so that a run that diverges shows it.

#include <span>
#include <vector>

namespace moelab {

/// Definition 1 with Eq. 21: m_q ∝ 1/s_q, of mean 1 over the features. A feature without dispersion (s_q at
/// most 1e-12 of the largest, which is rounding) says nothing of how tight the cluster is: it has weight 1,
/// and the others have mean 1 among themselves. So an empty cluster, or one of a single point, has M = I.
/// Throws InvalidOption for a negative dispersion.
std::vector<double> inverse_dispersion_weights(std::span<const double> dispersion);
/// The same into `weights`, of as many entries.
void inverse_dispersion_weights(std::span<const double> dispersion, std::span<double> weights);

/// Theorem 1: the minimiser of Σ_q w_q s_q + λ KL(uniform ‖ w) over the simplex, w_q = (λ/d)/(s_q + α), with
/// α the largest root of Σ_q 1/(s_q + α) = d/λ, in (−min s, ∞). The other roots of Eq. 7 give negative
/// weights. λ → ∞ gives uniform weights, λ → 0 equal weights on the smallest s, λ = d/Σ_q(1/s_q) weights
/// proportional to 1/s. Throws InvalidOption unless λ > 0 and no dispersion is negative.
std::vector<double> optimal_feature_weights(std::span<const double> dispersion, double lambda);
void optimal_feature_weights(std::span<const double> dispersion, double lambda, std::span<double> weights);

}  // namespace moelab
