#pragma once

/// Gaussian clusters and the metrics in which distances to their means are taken.

#include <vector>

#include "sim/base/types.h"

namespace moelab {

/// k clusters N(μ_i, Σ_i).
struct GaussianClusters {
  Matrix means;                     ///< (k, d)
  std::vector<Matrix> covariances;  ///< k of (d, d)
};

/// One metric a cluster, k of (d, d), symmetric and positive semidefinite: a point of cluster i is at
/// (x − y)ᵀ M_i (x − y) from y. Adaptive clustering routes a token with the metric of the cluster that it was
/// assigned to before (Nielsen et al. 2025, Eq. 8).
using Metrics = std::vector<Matrix>;

/// M_i = I.
Metrics euclidean_metrics(const GaussianClusters& clusters);

/// M_i = diag(row i) for weights (k, d) of features.
Metrics diagonal_metrics(const Matrix& weights);

/// The clusters after independent noise of that covariance (d, d): Σ_i + Σ_ε.
GaussianClusters contaminated(const GaussianClusters& clusters, const Matrix& noise_covariance);

/// The symmetric square root of a positive semidefinite matrix. Throws InvalidOption, with `name` for its
/// path, where an eigenvalue is negative beyond rounding.
Matrix symmetric_root(const Matrix& matrix, const char* name);

/// Throws InvalidOption unless there are k covariances and k metrics, all (d, d).
void require_shapes(const GaussianClusters& clusters, const Metrics& metrics);

}  // namespace moelab
