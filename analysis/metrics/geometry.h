#pragma once

/// Geometry of Gaussian clusters and of a router's loss (Nielsen et al. 2025): metrics, condition numbers,
/// spreads of features, mis-assignment, principal components and the Hessian of the router.

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

/// One metric for each cluster, k of (d, d), symmetric and positive semidefinite. The squared distance of a
/// point x of cluster i from y is (x − y)ᵀ M_i (x − y). Adaptive clustering routes a token with the metric of
/// the token's cluster in the layer before (Eq. 8).
using Metrics = std::vector<Matrix>;

/// The clusters after adding independent noise of this covariance (d, d): Σ_i + Σ_ε.
GaussianClusters contaminated(const GaussianClusters& clusters, const Matrix& noise_covariance);

/// The symmetric square root of a positive semidefinite matrix. Throws InvalidOption at the path `name` where
/// an eigenvalue is negative beyond rounding.
Matrix symmetric_root(const Matrix& matrix, const char* name);

/// Throws InvalidOption unless there are k covariances and k metrics, all (d, d).
void require_shapes(const GaussianClusters& clusters, const Metrics& metrics);

// Condition numbers. Matrices may be indefinite.

/// The eigenvalues λ of a symmetric matrix, as far as they matter to descent on its quadratic form.
struct Conditioning {
  double condition = 1;  ///< κ = max|λ| / min|λ|; infinite for a singular matrix
  double largest = 0;    ///< λ_max
  double smallest = 0;   ///< λ_min
  int negative = 0;      ///< eigenvalues below −d ε max|λ|, which is rounding
};

/// Reads the lower triangle only. For positive definite matrices κ = λ_max/λ_min. Throws InvalidOption for a
/// matrix that is empty or not square.
Conditioning conditioning(const Matrix& symmetric);

/// M Σ M with M = diag(weights): the covariance of M h (Eq. 32).
Matrix transformed_covariance(const Matrix& covariance, const Vector& weights);

// How widely each cluster spreads along each feature, and the feature weights that follow (Definition 1).

/// Dispersions s_kq of clusters along features. A cluster with less than two points has dispersion 0.
struct DispersionTable {
  Matrix values;            ///< (k, d)
  std::vector<int> counts;  ///< points of each cluster (k)
};

/// Variance, (1/N_k) Σ_i (x_iq − x̄_q)² (ddof 0): half of the pairwise dispersion N_k^{−2} Σ_ij ρ_ijq of
/// Theorem 1 for ρ_ijq = (x_iq − x_jq)². x (n, d), labels (n) in 0 … k − 1. Throws InvalidOption where there
/// are not n labels, or one is out of range.
DispersionTable variances(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters);

/// Maps the dispersions of one cluster to weights of its features. sim/base/numerics.h has two.
using FeatureWeights = std::function<std::vector<double>(std::span<const double> dispersion)>;

/// Row by row, (k, d).
Matrix feature_weights(const DispersionTable& table, const FeatureWeights& weights);

// How often a point is nearer to another cluster's mean than to its own (Lemma 2): by formula, by bounds and
// by draws. Contamination enters through the covariances, see contaminated().

/// δᵀMδ / (2 √(δᵀMΣMδ)) for the difference δ of two means: the distance to the boundary between them, in
/// standard deviations and in the metric M. Lemma 2 has M = I. Infinite for a cluster without width along Mδ,
/// 0 where the means coincide in the metric.
double boundary_distance(const Vector& difference, const Matrix& covariance, const Matrix& metric);

/// 1 − Φ(boundary distance): the probability that a point of N(μ, Σ) is nearer to μ + δ than to μ.
double misassignment_probability(const Vector& difference, const Matrix& covariance, const Matrix& metric);

/// (k, k). Entry (i, j) is the probability that a point of cluster i is nearer to μ_j than to μ_i, in M_i.
/// The diagonal is zero. Throws InvalidOption where shapes differ.
Matrix pairwise_misassignment(const GaussianClusters& clusters, const Metrics& metrics);

/// Upper bounds (k) on the probability that a point of cluster i is nearest to another mean: min(1, Σ_j
/// P_ij). The largest P_ij is a lower bound.
Vector union_bounds(const Matrix& pairwise);

/// An estimated probability.
struct DrawnShare {
  double value = 0;
  double standard_error = 0;  ///< √(p (1 − p) / draws), with p away from 0 and 1
};

/// The share of `draws` ≥ 1 points of cluster i whose nearest mean in M_i is another cluster's; the bounds
/// enclose it. The standard error uses p = (hits + 1)/(draws + 2), so it is positive for shares of 0 and 1.
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

/// Components are eigenvectors of the covariance (1/n) Σ_i (x_i − x̄)(x_i − x̄)ᵀ. The sign makes the entry of
/// largest size positive. Throws InvalidOption for no rows, or unless 1 ≤ k ≤ d.
PrincipalComponents principal_components(const Eigen::Ref<const Matrix>& x, int components);

// Second derivatives of the training loss in the rows of the router (proof of Proposition 2).

/// A mixture f(x_i) = Σ_e r_ie o_ie with r_i = softmax(W z_i), on n samples with the squared loss
/// L = (1/n) Σ_i ‖f(x_i) − y_i‖². The router reads z: x for the linear router, M h for adaptive clustering,
/// whose M has no gradient. A gate over a fixed selection of experts has this form, too. Renormalised gates
/// are r, with zeros for other experts. Gates that keep the raw r have zero outputs for other experts.
struct MixtureSamples {
  Matrix features;       ///< z (n, d)
  Matrix probabilities;  ///< r (n, E)
  Matrix outputs;        ///< o (n, E·o), expert after expert
  Matrix targets;        ///< y (n, o)
};

/// `exact`: ∂²L/∂W², by formula. `gauss_newton`: without the curvature of f. It is positive semidefinite and
/// equals the exact one where f = y.
enum class RouterCurvature { exact, gauss_newton };

/// The Hessian in all rows, (E·d, E·d), row after row. The block of rows e and k is (1/n) Σ_i B_ek(i) z_i
/// z_iᵀ. With a_e = o_e − f and ρ = f − y,
///   B_ek = 2 r_e r_k a_eᵀa_k                                        (Gauss-Newton)
///        + 2 δ_ek r_e ρᵀa_e − 2 r_e r_k ρᵀ(a_e + a_k).
/// The paper takes B to be one constant for all samples (its Eq. 30). It is not: ρᵀa_e depends on the sample
/// and may be negative. Softmax ignores a shift of all scores, so Σ_k B_ek = 0, and the Hessian has at least
/// d zero eigenvalues. Use one expert's block, as the paper does. Throws InvalidOption where
/// shapes differ.
Matrix router_hessian(const MixtureSamples& batch, RouterCurvature curvature);

/// The block of row e, (d, d): ∂²L/∂w_e².
Matrix expert_block(const Matrix& hessian, int experts, int expert);

/// ∂L/∂W (E, d), from the same batch.
Matrix router_gradient(const MixtureSamples& batch);

}  // namespace moelab
