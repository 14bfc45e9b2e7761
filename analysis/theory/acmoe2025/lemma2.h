#pragma once

/// Lemma 2 of Nielsen et al. 2025: a point of N(μ, Σ) with noise of covariance Σ_ε is nearer to μ + δ than to
/// μ with probability 1 − Φ(‖δ‖²/(2√(δᵀ(Σ + Σ_ε)δ))), or 1 − Φ(δᵀMδ/(2√(δᵀM(Σ + Σ_ε)Mδ))) in a metric M.
/// That is the probability of a wrong assignment for two clusters. For more, which the lemma calls exact with
/// δ to the nearest other mean, it is one of the pairwise probabilities, whose largest and whose sum enclose
/// the truth.

#include <functional>

#include "analysis/geometry/misassignment.h"
#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

using MisassignmentFormula =
    std::function<double(const Vector& difference, const Matrix& covariance, const Matrix& metric)>;

/// The metric from the covariance of the clean cluster.
using CovarianceMetric = std::function<Matrix(const Matrix& covariance)>;

Matrix euclidean_metric(const Matrix& covariance);
/// M ∝ diag(1/√Σ_qq), of mean 1: dispersions by mean absolute deviation.
Matrix adaptive_metric(const Matrix& covariance);

/// The largest difference between the formula and draws, in standard errors, over random pairs of clusters
/// with contamination, both with full covariances.
CheckFinding check_pair(const CheckEffort& effort, const CovarianceMetric& metric,
                        const MisassignmentFormula& formula = misassignment_probability);

/// What is claimed to enclose the truth for one cluster of several.
struct MisassignmentBounds {
  double lower = 0;
  double upper = 1;
};

/// Bounds for a point of cluster 0.
using BoundRule =
    std::function<MisassignmentBounds(const GaussianClusters& clusters, const Metrics& metrics)>;

/// The formula for the other mean that is nearest in the metric, as if it were the truth.
MisassignmentBounds nearest_only(const GaussianClusters& clusters, const Metrics& metrics);
/// The largest of the pairwise probabilities and the union bound.
MisassignmentBounds pairwise_bounds(const GaussianClusters& clusters, const Metrics& metrics);

/// By how many standard errors the share drawn lies outside the bounds at most, over random sets of six
/// clusters, Euclidean and adaptive metrics.
CheckFinding check_many(const CheckEffort& effort, const BoundRule& rule);

}  // namespace moelab
