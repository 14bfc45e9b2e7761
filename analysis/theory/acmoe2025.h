#pragma once

/// Checks of Nielsen et al. 2025 (adaptive clustering in mixtures of experts). They test the feature weights
/// of Theorem 1, the error rates of Lemma 2 and Proposition 1, and the condition numbers of Proposition 2.
/// Every check takes the rule that the paper claims, so that tests can pass a wrong one.

#include <functional>

#include "analysis/metrics/geometry.h"
#include "analysis/theory/check.h"

namespace moelab {

// Random instances of all checks

/// s (d) with log s_q ~ N(0, spread²).
Vector draw_log_normal(Engine& engine, int dim, double spread);

/// Wishart(I_d, degrees), (d, d): the sum of `degrees` squares of N(0, I_d).
Matrix draw_wishart(Engine& engine, int dim, int degrees);

/// An orthonormal matrix near I: the columns of I + tilt · G, G standard normal, made orthonormal from left
/// to right, with a positive diagonal.
Matrix draw_near_axis_rotation(Engine& engine, int dim, double tilt);

/// inverse_dispersion_weights and optimal_feature_weights of sim/base/numerics.h for vectors.
Vector inverse_weights(const Vector& dispersion);
Vector optimal_weights(const Vector& dispersion, double lambda);

// Theorem 1: w_q = (λ/d)/(s_q + α) with Σ_q 1/(s_q + α) = d/λ (Eq. 7) minimises
// Σ_q w_q s_q + λ KL(uniform ‖ w) over the simplex. Eq. 7 has d solutions α. Only the largest, which lies in
// (−min s, ∞), gives a point of the simplex. The theorem does not say which one it takes.

using WeightRule = std::function<Vector(const Vector& dispersion, double lambda)>;

struct SimplexMinimum {
  Vector weights;
  /// √(Δᵀ∇²F Δ) of the last Newton step Δ, where F is the objective times d/λ. F is self-concordant: below
  /// 1/4, twice the decrement bounds |w_q/w*_q − 1|.
  double decrement = 0;
};

/// The minimum of Σ_q w_q s_q − (λ/d) Σ_q log w_q over the simplex, by damped Newton steps from uniform
/// weights. It uses neither α nor Eq. 7.
SimplexMinimum minimise_over_simplex(const Vector& dispersion, double lambda);

/// Measures the largest |w_q/w*_q − 1| between the rule and the minimiser.
CheckFinding check_minimiser(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

/// Whether root j of `count`, in ascending order, is claimed to give a point of the simplex.
using RootClaim = std::function<bool(int j, int count)>;
bool every_root(int j, int count);
bool largest_root(int j, int count);

/// Measures the share of all roots of Eq. 7 for which the claim is right.
CheckFinding check_root_choice(const CheckEffort& effort, const RootClaim& claim);

/// The λ at which the weights are claimed to be proportional to 1/s.
using LambdaRule = std::function<double(const Vector& dispersion)>;
double harmonic_lambda(const Vector& dispersion);  ///< d / Σ_q(1/s_q), where α = 0

/// Measures the largest relative difference between the optimal weights at that λ and 1/s, both of sum 1.
CheckFinding check_inverse_weights(const CheckEffort& effort, const LambdaRule& lambda = harmonic_lambda);

/// λ → ∞: d w_q = 1 − (s_q − s̄)/λ + O(λ^{−2}), s̄ the mean over features. Measures the largest
/// |λ (1 − d w_q) − (s_q − s̄)| in units of max s − min s, at λ = 10⁶ (max s − min s).
CheckFinding check_large_lambda(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

/// λ → 0: w_q = (λ/d)/(s_q − min s) + O(λ²) except for the tightest feature, which gets all mass. Measures
/// the largest relative difference at λ/d = 10^{−6} of the smallest s_q − min s.
CheckFinding check_small_lambda(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

// Lemma 3: Eq. 7 has exactly d real solutions. This needs distinct dispersions. In general there is one
// solution between each −s_q and the next larger one, and one beyond the last.

/// All real solutions α of Eq. 7, ascending. Eq. 7 times Π_q(−s_q − α) is det(D − αI) = 0 for
/// D = −diag(s) + (λ/d) 1 1ᵀ (the secular equation of a rank-one change, Golub 1973). For m equal
/// dispersions, m − 1 eigenvalues are −s itself. They solve nothing and are left out.
Vector weight_equation_roots(const Vector& dispersion, double lambda);

using RootFinder = std::function<Vector(const Vector& dispersion, double lambda)>;

/// Measures the share of instances with exactly d solutions (`as_printed`), or with one solution in each
/// interval between different −s_q and no other. Half of the instances have ties.
CheckFinding check_root_count(const CheckEffort& effort, bool as_printed,
                              const RootFinder& roots = weight_equation_roots);

// Lemma 1: ‖δμ‖²_M ≥ ‖δμ‖² for M = diag(1/s) of mean 1, where δμ is the difference of two cluster means. With
// mean 1, ‖δμ‖²_M − ‖δμ‖² = d Cov_q(m_q, δμ_q²), the covariance over features. So the lemma holds if and only
// if Cov ≥ 0: the clusters are separated along the features on which they are tight. The paper assumes this
// in words. Without it the lemma fails more often than not.

/// The diagonal of M from the dispersions of a cluster.
using MetricRule = std::function<Vector(const Vector& dispersion)>;

/// Measures the largest |‖δμ‖²_M − ‖δμ‖² − d Cov_q(m, δμ²)| / (‖δμ‖²_M + ‖δμ‖²), over log s ~ N(0, a²) with
/// a = 1/4, 1/2, 1, 2 and δμ ~ N(0, I).
CheckFinding check_separation_criterion(const CheckEffort& effort, const MetricRule& rule = inverse_weights);

/// Measures the share of instances with ‖δμ‖_M ≥ ‖δμ‖ if the tighter of two features always has the larger
/// |δμ_q|.
CheckFinding check_separated_where_tight(const CheckEffort& effort, const MetricRule& rule = inverse_weights);

/// The proof's own hypothesis: Σ_{q tight} m_q > d − α with α < 1/2, and |δμ_q| larger on each of these
/// features than on all others. Measures the share of instances with ‖δμ‖_M ≥ ‖δμ‖, for 3 tight features of 8
/// with α = 0.1. The hypothesis is not enough: one tight feature may take all weight from another with a
/// larger difference. With m_q ≥ 1 on every tight feature (`each_above_one`) it is, since then
///   Σ (m_q − 1) δμ_q² ≥ (min_tight δμ² − max_other δμ²) Σ_other (1 − m_q) ≥ 0.
CheckFinding check_concentrated(const CheckEffort& effort, bool each_above_one,
                                const MetricRule& rule = inverse_weights);

/// Measures how often ‖δμ‖_M < ‖δμ‖ for independent dispersions and differences: d = 8, log s ~ N(0,
/// spread²), δμ ~ N(0, I).
CheckFinding check_separation_failures(const CheckEffort& effort, double spread, double predicted,
                                       const MetricRule& rule = inverse_weights);

// Lemma 2: a point of N(μ, Σ) with noise of covariance Σ_ε is nearer to μ + δ than to μ in a metric M with
// probability 1 − Φ(δᵀMδ/(2√(δᵀM(Σ + Σ_ε)Mδ))). For two clusters this is the probability of a wrong
// assignment. For more clusters the lemma calls it exact, with δ to the nearest other mean. In fact it is one
// of the pairwise probabilities. The largest of them and their sum enclose the truth.

using MisassignmentFormula =
    std::function<double(const Vector& difference, const Matrix& covariance, const Matrix& metric)>;

/// The metric from the covariance of the clean cluster.
using CovarianceMetric = std::function<Matrix(const Matrix& covariance)>;
Matrix euclidean_metric(const Matrix& covariance);
/// M ∝ diag(1/√Σ_qq) of mean 1: dispersions by mean absolute deviation.
Matrix adaptive_metric(const Matrix& covariance);

/// Measures the largest difference between the formula and draws, in standard errors, over random pairs of
/// contaminated clusters with full covariances.
CheckFinding check_pair(const CheckEffort& effort, const CovarianceMetric& metric,
                        const MisassignmentFormula& formula = misassignment_probability);

/// What is claimed to enclose the truth for one of several clusters.
struct MisassignmentBounds {
  double lower = 0;
  double upper = 1;
};

/// Bounds for a point of cluster 0.
using BoundRule =
    std::function<MisassignmentBounds(const GaussianClusters& clusters, const Metrics& metrics)>;
/// Both bounds are the formula for the other mean that is nearest in the metric.
MisassignmentBounds nearest_only(const GaussianClusters& clusters, const Metrics& metrics);
/// The largest pairwise probability and the union bound.
MisassignmentBounds pairwise_bounds(const GaussianClusters& clusters, const Metrics& metrics);

/// Measures by how many standard errors the drawn share lies outside the bounds, the largest over random sets
/// of six clusters in Euclidean and adaptive metrics.
CheckFinding check_many(const CheckEffort& effort, const BoundRule& rule);

// Proposition 1: M = diag(1/s) assigns no more points wrongly than M = I. For two clusters the paper compares
// the boundary distances δᵀMδ/(2√(δᵀM(Σ + Σ_ε)Mδ)) of Lemma 2. Without noise, for diagonal Σ and s ∝ σ, it is
// true: E[1/σ]² E[σ²] ≥ 1 under the weights δ_q². For noise the paper infers it from Lemma 1. There it fails
// if M comes from the clean cluster.

/// The diagonal of M from the standard deviations of the clean features and of their noise.
using NoisyMetricRule = std::function<Vector(const Vector& deviation, const Vector& noise)>;
Vector metric_of_clean(const Vector& deviation, const Vector& noise);         ///< ∝ 1/σ
Vector metric_of_contaminated(const Vector& deviation, const Vector& noise);  ///< ∝ 1/√(σ² + σ_ε²)

/// Measures the share of instances in which M assigns no more points wrongly. d = 8, log σ_q ~ N(0, 1),
/// δ ~ N(0, I), and no noise or independent noise with log σ_ε,q ~ N(0, 2²).
CheckFinding check_fewer_errors(const CheckEffort& effort, bool noise, const NoisyMetricRule& rule);

/// Measures how often M assigns more points wrongly under that noise.
CheckFinding check_more_errors(const CheckEffort& effort, const NoisyMetricRule& rule = metric_of_clean);

/// For noise of variance τ² on every feature: the largest τ² for which M = diag(1/σ) assigns no more points
/// wrongly.
using NoiseThreshold = std::function<double(const Vector& deviation, const Vector& difference)>;
/// (E[1/σ]² E[σ²] − 1)/Var(1/σ) under the weights δ_q².
double isotropic_threshold(const Vector& deviation, const Vector& difference);

/// Measures the share of instances in which M assigns no more points wrongly if and only if τ² is at most the
/// threshold. τ² is log-normal around the threshold.
CheckFinding check_isotropic(const CheckEffort& effort,
                             const NoiseThreshold& threshold = isotropic_threshold);

/// The metric that is claimed to be the best.
using FullMetricRule = std::function<Matrix(const Matrix& covariance, const Matrix& noise)>;
Matrix best_metric(const Matrix& covariance, const Matrix& noise);  ///< (Σ + Σ_ε)^{−1}

/// Measures the largest boundary distance of other metrics over the claimed one's, which is at most 1.
/// Σ and Σ_ε are full. The others are I, diag(1/σ) of the clean and of the contaminated cluster, Σ^{−1} and a
/// random metric.
CheckFinding check_ceiling(const CheckEffort& effort, const FullMetricRule& best = best_metric);

// Proposition 1 for the router that it names. Eq. 2 and Definition 2 take the largest hᵀM e_k, a dot product.
// Here e_k = μ_k. A point of cluster a is wrong with probability Φ(m / √(δᵀM(Σ)Mδ)) for the mean margin
// m = μ_aᵀMδ. For the nearest mean m = −δᵀMδ/2: a dot product lacks the terms −½ e_kᵀM e_k.

/// The mean of the margin by which a point of the first cluster prefers the second.
using MarginRule = std::function<double(const Vector& own, const Vector& other, const Vector& metric)>;
double dot_product_margin(const Vector& own, const Vector& other, const Vector& metric);  ///< μ_aᵀMδ
/// With −½ e_kᵀM e_k added to each score: −δᵀMδ/2.
double centred_margin(const Vector& own, const Vector& other, const Vector& metric);

/// Clusters: means (k, d) and standard deviations of features (k, d).
struct DiagonalClusters {
  Matrix means, deviations;
};
using ClusterLaw = std::function<DiagonalClusters(Engine& engine)>;
DiagonalClusters draw_unrelated_pair(Engine& engine);  ///< d = 8, log σ ~ N(0, 1), means N(0, I)
/// The law of scenarios/acmoe2025: 16 clusters in 24 dimensions, 0.15 on 6 features, 1.5 on the others.
DiagonalClusters draw_shipped_clusters(Engine& engine);

/// Measures the share of ordered pairs of clusters in which M = diag(1/σ) of the point's own cluster has no
/// higher probability of a wrong assignment than M = I, without noise.
CheckFinding check_router_errors(const CheckEffort& effort, const ClusterLaw& law, const MarginRule& margin);

// Proposition 2: κ(MΣM) ≤ κ(Σ). The paper takes these for the condition numbers of the router's Hessian with
// and without M. With M = diag(Σ)^{−1/2}, as from mean absolute deviations, MΣM is the correlation matrix,
// and κ = 1 for diagonal Σ. With M = diag(Σ)^{−1}, as from variances, κ(MΣM) = κ(Σ^{−1}) = κ(Σ) for diagonal
// Σ. For other Σ the proof commutes M with the eigenvectors of Σ. This needs eigenvectors near the axes.

/// The diagonal of M from a covariance.
using ScalingRule = std::function<Vector(const Matrix& covariance)>;
Vector scale_by_deviation(const Matrix& covariance);  ///< ∝ Σ_qq^{−1/2}
Vector scale_by_variance(const Matrix& covariance);   ///< ∝ Σ_qq^{−1}

/// Measures the largest κ(MΣM) for diagonal Σ, log √Σ_qq ~ N(0, 1), d = 8. Predicted: 1.
CheckFinding check_sphering(const CheckEffort& effort, const ScalingRule& rule = scale_by_deviation);

/// Measures the largest |κ(MΣM)/κ(Σ) − 1| for the same Σ. Predicted: 0.
CheckFinding check_unchanged(const CheckEffort& effort, const ScalingRule& rule = scale_by_variance);

using CovarianceLaw = std::function<Matrix(Engine& engine)>;
Matrix draw_diagonal_covariance(Engine& engine);  ///< the law of check_sphering

/// The instances, and those with κ(MΣM) > κ(Σ) beyond rounding.
struct ConditioningFailures {
  int instances = 0;
  int failures = 0;
  double largest_ratio = 0;  ///< of κ(MΣM) to κ(Σ)
};
ConditioningFailures count_conditioning_failures(const CheckEffort& effort, const CovarianceLaw& law,
                                                 const ScalingRule& rule);

/// Measures the share with κ(MΣM) ≤ κ(Σ) for Σ = Q diag(λ) Qᵀ near the axes: log √λ ~ N(0, 1), Q from
/// draw_near_axis_rotation with tilt 0.05.
CheckFinding check_near_axis(const CheckEffort& effort, const ScalingRule& rule = scale_by_deviation);

/// Measures how often κ(MΣM) > κ(Σ) for Σ ~ Wishart(I_8, 16).
CheckFinding check_wishart(const CheckEffort& effort, const ScalingRule& rule, double predicted, double unit);

/// Proposition 2 for inputs of several clusters, each scaled by its cluster's M. The proposition is
/// about one centred cluster. Measures the share of draws with
///   κ((1/k) Σ_c M_c (Σ_c + μ_c μ_cᵀ) M_c) ≤ κ((1/k) Σ_c (Σ_c + μ_c μ_cᵀ)),
/// and gives the median and the extreme quotients of the sides. The 16 clusters have the law of
/// scenarios/acmoe2025: d = 24, means N(0, mean_std² I), deviation 0.15 on 6 random features and 1.5 on the
/// others. M_c = diag(1/σ_c) has mean 1.
CheckFinding check_pooled_moment(const CheckEffort& effort, double mean_std);

/// The same with the factor B(h) of the Hessian in one row of a router (see check_router_hessian): κ of the
/// mean of B(h)(M_c h)(M_c h)ᵀ against κ of the mean of B(h)hhᵀ, both max|λ|/min|λ|. Four constant experts
/// and a random router serve rows of the same law, one target for each cluster.
CheckFinding check_pooled_hessian(const CheckEffort& effort, double mean_std);

// The proof of Proposition 2 (Eq. 30-32) gives the Hessian of the loss in one row of the router as
// H^(i) = B_i E[(Mh)(Mh)ᵀ], where B_i is "some constant that depends only on i". But B_i depends on the
// sample and may be negative: H^(i) = E[B_i(h)(Mh)(Mh)ᵀ]. So H^(i) may be indefinite, and its condition
// number differs from κ(MΣM).

/// ∂²L/∂w_0² (d, d) of the first row.
using RowHessian = std::function<Matrix(const MixtureSamples& batch)>;
/// The multiple of E[zzᵀ], z = Mh, that is nearest to the exact Hessian: the best that a constant B_0 can do.
Matrix constant_curvature(const MixtureSamples& batch);
/// By the formula of analysis/metrics/geometry.h.
Matrix exact_curvature(const MixtureSamples& batch);

/// Measures the largest relative difference (Frobenius norm) from central differences of the gradient in the
/// first row, over random mixtures of four linear experts with plain and adaptive features.
CheckFinding check_router_hessian(const CheckEffort& effort, const RowHessian& hessian);

// Lemma 4: if the unit eigenvectors v_i of Σ satisfy v_iᵀb_i ≥ 1 − ε for the axes b_i, then
// |λ_i − Σ_ii| ≤ ε max_j |λ_i − λ_j|. The proof ends with 1 − (v_iᵀb_i)² ≤ ε. What follows is
// 1 − (1 − ε)² = 2ε − ε². Two dimensions attain this factor, so no smaller one will do.

/// The factor of max_j |λ_i − λ_j|.
using BoundFactor = std::function<double(double epsilon)>;
double factor_as_printed(double epsilon);  ///< ε
double corrected_factor(double epsilon);   ///< 2ε − ε²

/// Measures the largest |λ_i − Σ_ii| / (factor · max_j |λ_i − λ_j|), which is at most 1, over random Σ of 2
/// to 8 dimensions. ε is the smallest that fits each Σ.
CheckFinding check_eigenvalue_bound(const CheckEffort& effort, const BoundFactor& factor);

// Remark 3: Pr[wrong] of Eq. 10 is e^(−O(‖δμ‖²)), from 1 − Φ(x) ~ e^(−x²/2)/(x √(2π)). With x = t ‖u‖²/(2
// √(uᵀΣu)) for δμ = t u, it is an exponential in t² with the rate ‖u‖⁴/(8 uᵀΣu).

/// The claimed rate −ln Pr / t² for large t.
using DecayRate = std::function<double(const Vector& direction, const Matrix& covariance)>;
double gaussian_decay(const Vector& direction, const Matrix& covariance);

/// Measures the largest relative difference of −(ln Pr(2t) − ln Pr(t) + ln 2)/(3t²) from the rate, with t
/// such that x = 8. Mills' ratio gives about 1/(2·8⁴).
CheckFinding check_decay(const CheckEffort& effort, const DecayRate& rate = gaussian_decay);

// Remark 4: EM for a Gaussian mixture converges faster with less overlap, and M lowers the overlap. One M for
// all points is a linear map. It changes neither the overlap nor the steps of EM whose components have
// covariances of their own. It changes EM with spherical components, whose metric is the Euclidean one.

/// Measures the share of instances in which EM for two components ±μ converges faster in the space of
/// M = diag(1/σ): d = 8, covariance diag(σ²), the larger |μ_q| on the tighter feature. EM estimates μ and a
/// covariance, which is v I for `spherical` components. The rate is the quotient of two steps in succession
/// near the fixed point.
CheckFinding check_em(const CheckEffort& effort, bool spherical);

/// The same rates: measures the low end of the 99.9 % interval of the mean gain. Predicted: above 0, beyond
/// rounding.
CheckFinding check_mean_em(const CheckEffort& effort, bool spherical);

}  // namespace moelab
