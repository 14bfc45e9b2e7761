#pragma once

/// How far apart clusters lie, in units of their width (Dasgupta 1999; Nielsen et al. 2025, Lemma 1).

#include "analysis/geometry/clusters.h"

namespace moelab {

/// The pair of clusters that is nearest, and how near.
struct Separation {
  double value = 0;
  int from = 0;  ///< the cluster whose metric measures
  int to = 0;
};

/// The largest c for which the clusters are c-separated: the minimum over ordered pairs of
///   ‖μ_i − μ_j‖_{M_i} / √(d · max(λ_max(Σ'_i), λ_max(Σ'_j))),
/// with Σ' = M_i^{1/2} Σ M_i^{1/2}, the covariance in the space where M_i is the Euclidean metric. For
/// spherical clusters and M = I the denominator is max(σ_i, σ_j) √d. The scale of M_i cancels. Infinite where
/// neither cluster has any width. Throws InvalidOption for fewer than two clusters, or shapes that differ.
Separation minimum_separation(const GaussianClusters& clusters, const Metrics& metrics);

}  // namespace moelab
