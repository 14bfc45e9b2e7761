#pragma once

/// Proposition 1 of Nielsen et al. 2025: with M = diag(1/s) no more points are assigned wrongly than without.
/// For two clusters it compares the boundary distances of Lemma 2, δᵀMδ/(2√(δᵀM(Σ + Σ_ε)Mδ)). For diagonal
/// Σ, s ∝ σ and no noise it is true: E[1/σ]² E[σ²] ≥ 1 under the weights δ_q². The paper infers it for noise
/// from its Lemma 1; it fails there if M comes from the clean cluster.

#include <functional>

#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

/// The diagonal of M from the standard deviations of the clean features and of the noise on them.
using NoisyMetricRule = std::function<Vector(const Vector& deviation, const Vector& noise)>;

Vector metric_of_clean(const Vector& deviation, const Vector& noise);         ///< ∝ 1/σ
Vector metric_of_contaminated(const Vector& deviation, const Vector& noise);  ///< ∝ 1/√(σ² + σ_ε²)

/// log σ_q ~ N(0, 1), δ ~ N(0, I), d = 8, and noise with log σ_ε,q ~ N(0, 2²), independent, or none.
/// The share of instances in which M assigns no more points wrongly.
CheckFinding check_fewer_errors(const CheckEffort& effort, bool noise, const NoisyMetricRule& rule);

/// The frequency of instances with noise in which M assigns more points wrongly.
CheckFinding check_more_errors(const CheckEffort& effort, const NoisyMetricRule& rule = metric_of_clean);

/// Noise σ_ε² = τ² on every feature: the largest τ² for which M = diag(1/σ) assigns no more points wrongly.
using NoiseThreshold = std::function<double(const Vector& deviation, const Vector& difference)>;

/// (E[1/σ]² E[σ²] − 1)/Var(1/σ) under the weights δ_q².
double isotropic_threshold(const Vector& deviation, const Vector& difference);

/// The share of instances, τ² log-normal around the threshold, in which M assigns no more points wrongly if
/// and only if τ² is at most the threshold.
CheckFinding check_isotropic(const CheckEffort& effort,
                             const NoiseThreshold& threshold = isotropic_threshold);

/// The metric that is claimed to be the best.
using FullMetricRule = std::function<Matrix(const Matrix& covariance, const Matrix& noise)>;

Matrix best_metric(const Matrix& covariance, const Matrix& noise);  ///< (Σ + Σ_ε)^{−1}

/// The largest boundary distance of other metrics, relative to that of the claimed one: at most 1. Full
/// covariances Σ and Σ_ε; the others are I, diag(1/σ) of the clean and of the contaminated cluster, Σ^{−1}
/// and a random one.
CheckFinding check_ceiling(const CheckEffort& effort, const FullMetricRule& best = best_metric);

}  // namespace moelab
