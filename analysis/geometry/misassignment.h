#pragma once

/// How often a point is nearer to the mean of another cluster than to that of its own (Nielsen et al. 2025,
/// Lemma 2), by formula, by bounds and by draws. Contamination enters through the covariances: see
/// contaminated().

#include "analysis/geometry/clusters.h"
#include "sim/base/random.h"

namespace moelab {

/// δᵀMδ / (2 √(δᵀMΣMδ)) for the difference δ of two means: how many standard deviations the boundary between
/// them is away, in the metric M. Lemma 2 has M = I. Infinite for a cluster without width along Mδ, 0 where
/// the means coincide in the metric.
double boundary_distance(const Vector& difference, const Matrix& covariance, const Matrix& metric);

/// 1 − Φ(boundary distance): the probability that a point of N(μ, Σ) is nearer to μ + δ than to μ.
double misassignment_probability(const Vector& difference, const Matrix& covariance, const Matrix& metric);

/// Entry (i, j): the probability that a point of cluster i is nearer to μ_j than to μ_i, in M_i; (k, k), zero
/// on the diagonal. Throws InvalidOption where shapes differ.
Matrix pairwise_misassignment(const GaussianClusters& clusters, const Metrics& metrics);

/// The largest entry of such a table.
struct WorstPair {
  double probability = 0;
  int from = 0;  ///< the cluster of the point
  int to = 0;    ///< the cluster it is mistaken for
};
WorstPair worst_pair(const Matrix& pairwise);

/// Upper bounds on the probability that a point of cluster i is nearest to another mean: min(1, Σ_j P_ij),
/// (k). The largest P_ij is a lower bound.
Vector union_bounds(const Matrix& pairwise);

/// An estimated probability.
struct DrawnShare {
  double value = 0;
  double standard_error = 0;  ///< √(p (1 − p) / draws), with p a point beyond 0 and 1
};

/// The share of `draws` ≥ 1 points of cluster i whose nearest mean in M_i is another: what the bounds
/// enclose. The standard error takes p = (hits + 1)/(draws + 2), so that it is not zero for shares of 0
/// and 1.
DrawnShare drawn_misassignment(const GaussianClusters& clusters, const Metrics& metrics, int cluster,
                               int draws, Engine& engine);

}  // namespace moelab
