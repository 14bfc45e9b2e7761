#pragma once

/// Gaussian clusters and the metrics in which distances to their means are taken.

#include <functional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"

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

// Condition numbers, of matrices that may be indefinite too.

/// What the eigenvalues λ of a symmetric matrix say of descent on the quadratic form that it belongs to.
struct Conditioning {
  double condition = 1;  ///< κ = max|λ| / min|λ|; infinite for a singular matrix
  double largest = 0;    ///< λ_max
  double smallest = 0;   ///< λ_min
  int negative = 0;      ///< eigenvalues below −d ε max|λ|, which is rounding
};

/// Only the lower triangle is read. For positive definite matrices κ = λ_max/λ_min. Throws InvalidOption for
/// a matrix that is empty or not square.
Conditioning conditioning(const Matrix& symmetric);

/// M Σ M with M = diag(weights): the covariance of M h (Nielsen et al. 2025, Eq. 32).
Matrix transformed_covariance(const Matrix& covariance, const Vector& weights);

// How widely each cluster spreads along each feature, and the feature weights that follow from it (Nielsen
// et al. 2025, Definition 1).

/// Dispersions s_kq of clusters along features. A cluster without points, or with one, has dispersion 0.
struct DispersionTable {
  Matrix values;            ///< (k, d)
  std::vector<int> counts;  ///< points of each cluster (k)
};

/// Mean absolute deviation from the cluster's mean, (1/N_k) Σ_i |x_iq − x̄_q|. x (n, d), labels (n) in
/// 0 … k − 1. Throws InvalidOption where there are not n labels, or one is out of range.
DispersionTable mean_absolute_deviations(const Eigen::Ref<const Matrix>& x, std::span<const int> labels,
                                         int clusters);

/// Variance, (1/N_k) Σ_i (x_iq − x̄_q)² (ddof 0): half of the pairwise dispersion N_k^{−2} Σ_ij ρ_ijq of
/// Theorem 1 for ρ_ijq = (x_iq − x_jq)².
DispersionTable variances(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters);

/// From the dispersions of one cluster to weights of its features: sim/base/feature_weights.h has two.
using FeatureWeights = std::function<std::vector<double>(std::span<const double> dispersion)>;

/// Row by row, (k, d).
Matrix feature_weights(const DispersionTable& table, const FeatureWeights& weights);

// How often a point is nearer to the mean of another cluster than to that of its own (Nielsen et al. 2025,
// Lemma 2), by formula, by bounds and by draws. Contamination enters through the covariances: see
// contaminated().

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

// Principal components of rows x (n, d): directions of largest variance.

/// Rows in the coordinates of the first k components, by variance.
struct PrincipalComponents {
  Matrix coordinates;     ///< (n, k), of the centred rows
  Vector variance_share;  ///< (k), variance along the component ÷ total variance; 0 where that is 0
  Vector centre;          ///< (d), x̄
  Matrix directions;      ///< (d, k), the components
};

/// The eigenvectors v of the covariance (1/n) Σ_i (x_i − x̄)(x_i − x̄)ᵀ. Of v and −v, the one whose entry of
/// largest size is positive. Throws InvalidOption for no rows, or unless 1 ≤ k ≤ d.
PrincipalComponents principal_components(const Eigen::Ref<const Matrix>& x, int components);

// Second derivatives of the training loss in the rows of the router (Nielsen et al. 2025, proof of
// Proposition 2).

/// A mixture f(x_i) = Σ_e r_ie o_ie with r_i = softmax(W z_i), on n samples with the squared loss
/// L = (1/n) Σ_i ‖f(x_i) − y_i‖². z is what meets the router rows: x for the linear router, M h for adaptive
/// clustering, whose M carries no gradient. A gate over selected experts fits too, the selection held fixed:
/// renormalised gates enter as r, zero for the others; gates that keep the raw r enter with outputs zero for
/// the others.
struct MixtureSamples {
  Matrix features;       ///< z (n, d)
  Matrix probabilities;  ///< r (n, E)
  Matrix outputs;        ///< o (n, E·o), expert after expert
  Matrix targets;        ///< y (n, o)
};

/// `exact`: ∂²L/∂W², by formula. `gauss_newton`: without the curvature of f, which is positive semidefinite
/// and equal to the exact one where f = y.
enum class RouterCurvature { exact, gauss_newton };

/// The Hessian in all rows, (E·d, E·d), row after row: the block of rows e and k is (1/n) Σ_i B_ek(i) z_i
/// z_iᵀ with, for a_e = o_e − f and ρ = f − y,
///   B_ek = 2 r_e r_k a_eᵀa_k                                        (Gauss-Newton)
///        + 2 δ_ek r_e ρᵀa_e − 2 r_e r_k ρᵀ(a_e + a_k).
/// The paper takes B to be one constant for all samples (its Eq. 30), which it is not: ρᵀa_e depends on the
/// sample and may be negative. Softmax ignores a shift of all scores, so that Σ_k B_ek = 0 and the Hessian
/// has d zero eigenvalues at least: take one expert's block, as the paper does, or without_common_shift.
/// Throws InvalidOption where shapes differ.
Matrix router_hessian(const MixtureSamples& batch, RouterCurvature curvature);

/// The block of row e alone, (d, d): ∂²L/∂w_e².
Matrix expert_block(const Matrix& hessian, int experts, int expert);

/// The Hessian restricted to changes of W whose rows add up to 0, in an orthonormal basis of them,
/// ((E − 1)·d, (E − 1)·d).
Matrix without_common_shift(const Matrix& hessian, int experts);

/// ∂L/∂W (E, d), from the same batch.
Matrix router_gradient(const MixtureSamples& batch);

// How far apart clusters lie, in units of their width (Dasgupta 1999; Nielsen et al. 2025, Lemma 1).

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
