#pragma once

/// Random instances that the checks of Nielsen et al. 2025 share.

#include <functional>

#include "analysis/metrics/geometry.h"
#include "analysis/theory/check.h"
#include "sim/base/arrays.h"

namespace moelab {

/// exp(a z_q), z ~ N(0, I_d): dispersions with log s ~ N(0, a²).
Vector draw_log_normal(Engine& engine, int dim, double spread);

/// Wishart(I_d, degrees): the sum of that many squares of N(0, I_d).
Matrix draw_wishart(Engine& engine, int dim, int degrees);

/// Orthonormal columns near the axes: those of I + tilt · G, G standard normal, made orthonormal from left to
/// right, with positive diagonal.
Matrix draw_near_axis_rotation(Engine& engine, int dim, double tilt);

/// inverse_dispersion_weights and optimal_feature_weights of sim/base, of vectors.
Vector inverse_weights(const Vector& dispersion);
Vector optimal_weights(const Vector& dispersion, double lambda);

// Lemma 1 of Nielsen et al. 2025: ‖δμ‖²_M ≥ ‖δμ‖² for M = diag(1/s) of mean 1, δμ the difference of two
// cluster means. With mean 1, ‖δμ‖²_M − ‖δμ‖² = d Cov_q(m_q, δμ_q²), the covariance over features: it holds
// if and only if Cov ≥ 0, that is for clusters that are separated along the features on which they are
// tight, as the paper assumes in words. Without that it fails more often than not.

/// The diagonal of M from the dispersions of a cluster.
using MetricRule = std::function<Vector(const Vector& dispersion)>;

/// The largest |‖δμ‖²_M − ‖δμ‖² − d Cov_q(m, δμ²)| relative to ‖δμ‖²_M + ‖δμ‖², over log s ~ N(0, a²),
/// a = 1/4, 1/2, 1, 2 and δμ ~ N(0, I).
CheckFinding check_separation_criterion(const CheckEffort& effort, const MetricRule& rule = inverse_weights);

/// The share of instances with ‖δμ‖_M ≥ ‖δμ‖ where the tighter of two features is always the one with the
/// larger |δμ_q|.
CheckFinding check_separated_where_tight(const CheckEffort& effort, const MetricRule& rule = inverse_weights);

/// The share of instances with ‖δμ‖_M < ‖δμ‖ for dispersions and differences that know nothing of each other:
/// d = 8, log s ~ N(0, spread²), δμ ~ N(0, I).
CheckFinding check_separation_failures(const CheckEffort& effort, double spread, double predicted,
                                       const MetricRule& rule = inverse_weights);

// Lemma 2 of Nielsen et al. 2025: a point of N(μ, Σ) with noise of covariance Σ_ε is nearer to μ + δ than to
// μ with probability 1 − Φ(‖δ‖²/(2√(δᵀ(Σ + Σ_ε)δ))), or 1 − Φ(δᵀMδ/(2√(δᵀM(Σ + Σ_ε)Mδ))) in a metric M.
// That is the probability of a wrong assignment for two clusters. For more, which the lemma calls exact with
// δ to the nearest other mean, it is one of the pairwise probabilities, whose largest and whose sum enclose
// the truth.

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

// Lemma 3 of Nielsen et al. 2025: Σ_q 1/(s_q + α) = d/λ (Eq. 7) has exactly d real solutions. It needs
// distinct dispersions: there is one solution to the right of each different −s_q and before the next.

/// All real solutions α of Eq. 7, ascending, as eigenvalues: det(D − αI) = 0 for D = −diag(s) + (λ/d) 1 1ᵀ is
/// Eq. 7 times Π_q(−s_q − α) (the secular equation of a change of rank one, Golub 1973). Of m equal
/// dispersions m − 1 eigenvalues are −s itself, which is no solution; they are left out.
Vector weight_equation_roots(const Vector& dispersion, double lambda);

using RootFinder = std::function<Vector(const Vector& dispersion, double lambda)>;

/// The share of instances with exactly d solutions (`as_printed`), or with one in each interval between the
/// different −s_q and none elsewhere. Half of the instances have ties.
CheckFinding check_root_count(const CheckEffort& effort, bool as_printed,
                              const RootFinder& roots = weight_equation_roots);

// Lemma 4 of Nielsen et al. 2025: where the unit eigenvectors v_i of Σ satisfy v_iᵀb_i ≥ 1 − ε for the axes
// b_i, |λ_i − Σ_ii| ≤ ε max_j |λ_i − λ_j|. The proof ends with 1 − (v_iᵀb_i)² ≤ ε, where 1 − (1 − ε)² =
// 2ε − ε² is what follows. Two dimensions attain that, so no smaller factor will do.

/// The factor of max_j |λ_i − λ_j|.
using BoundFactor = std::function<double(double epsilon)>;

double factor_as_printed(double epsilon);  ///< ε
double corrected_factor(double epsilon);   ///< 2ε − ε²

/// The largest |λ_i − Σ_ii| / (factor · max_j |λ_i − λ_j|) over random Σ of 2 to 8 dimensions, ε the
/// smallest that fits each: at most 1.
CheckFinding check_eigenvalue_bound(const CheckEffort& effort, const BoundFactor& factor);

// Proposition 2 of Nielsen et al. 2025 where it is used: on the second moment of inputs of several clusters,
// each scaled by the M of its own cluster,
//   κ((1/k) Σ_c M_c (Σ_c + μ_c μ_cᵀ) M_c) ≤ κ((1/k) Σ_c (Σ_c + μ_c μ_cᵀ)),
// which the proposition says of one centred cluster.

/// 16 clusters of the law of scenarios/acmoe2025: d = 24, means N(0, mean_std² I), deviations .15 on 6 random
/// features and 1.5 on the others. The share of draws on which the inequality holds, with the median and the
/// largest quotient of its sides; M_c = diag(1/σ_c), of mean 1.
CheckFinding check_pooled_moment(const CheckEffort& effort, double mean_std);

// Proposition 1 of Nielsen et al. 2025: with M = diag(1/s) no more points are assigned wrongly than without.
// For two clusters it compares the boundary distances of Lemma 2, δᵀMδ/(2√(δᵀM(Σ + Σ_ε)Mδ)). For diagonal
// Σ, s ∝ σ and no noise it is true: E[1/σ]² E[σ²] ≥ 1 under the weights δ_q². The paper infers it for noise
// from its Lemma 1; it fails there if M comes from the clean cluster.

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

// Proposition 2 of Nielsen et al. 2025: κ(MΣM) ≤ κ(Σ), which the paper takes for the condition numbers of
// the router's Hessian with and without M (see router_hessian.h). With M = diag(Σ)^{−1/2}, as from
// mean absolute deviations, MΣM is the correlation matrix: κ = 1 for diagonal Σ. With M = diag(Σ)^{−1}, as
// from variances, κ(MΣM) = κ(Σ^{−1}) = κ(Σ) for diagonal Σ. For others the proof commutes M with the
// eigenvectors of Σ, which must be near the axes for that.

/// The diagonal of M from a covariance.
using ScalingRule = std::function<Vector(const Matrix& covariance)>;

Vector scale_by_deviation(const Matrix& covariance);  ///< ∝ Σ_qq^{−1/2}
Vector scale_by_variance(const Matrix& covariance);   ///< ∝ Σ_qq^{−1}

using CovarianceLaw = std::function<Matrix(Engine& engine)>;

/// d = 8: log √Σ_qq ~ N(0, 1), the rest 0.
Matrix draw_diagonal_covariance(Engine& engine);
/// Q diag(λ) Qᵀ, log √λ ~ N(0, 1), Q orthonormal from the columns of I + 0.05 G, G standard normal, with
/// positive diagonal.
Matrix draw_near_axis_covariance(Engine& engine);
/// Wishart(I, 16 degrees of freedom).
Matrix draw_wishart_covariance(Engine& engine);

/// κ(MΣM) for diagonal Σ and M from standard deviations, the largest: 1.
CheckFinding check_sphering(const CheckEffort& effort, const ScalingRule& rule = scale_by_deviation);

/// |κ(MΣM)/κ(Σ) − 1| for diagonal Σ and M from variances, the largest: 0.
CheckFinding check_unchanged(const CheckEffort& effort, const ScalingRule& rule = scale_by_variance);

/// The number of instances, and of those with κ(MΣM) > κ(Σ) beyond rounding.
struct ConditioningFailures {
  int instances = 0;
  int failures = 0;
  double largest_ratio = 0;  ///< of κ(MΣM) to κ(Σ)
};
ConditioningFailures count_conditioning_failures(const CheckEffort& effort, const CovarianceLaw& law,
                                                 const ScalingRule& rule);

/// The share of Σ near the axes with κ(MΣM) ≤ κ(Σ).
CheckFinding check_near_axis(const CheckEffort& effort, const ScalingRule& rule = scale_by_deviation);

/// The frequency of Wishart Σ with κ(MΣM) > κ(Σ).
CheckFinding check_wishart(const CheckEffort& effort, const ScalingRule& rule, double predicted, double unit);

// The proof of Proposition 2 of Nielsen et al. 2025 (Eq. 30-32) on the Hessian of the loss in one row of the
// router: H^(i) = B_i E[(Mh)(Mh)ᵀ] with B_i "some constant that depends only on i". B_i depends on the
// sample and may be negative: H^(i) = E[B_i(h)(Mh)(Mh)ᵀ], which may be indefinite, and whose condition
// number is not that of MΣM.

/// ∂²L/∂w_0² (d, d) of the first row.
using RowHessian = std::function<Matrix(const MixtureSamples& batch)>;

/// The multiple of E[zzᵀ], z = Mh, that is nearest to the exact Hessian: the best that a constant B_0 can do.
Matrix constant_curvature(const MixtureSamples& batch);
/// By the formula of analysis/metrics/geometry.h.
Matrix exact_curvature(const MixtureSamples& batch);

/// The largest relative difference in the Frobenius norm from central differences of the gradient in the
/// first row, over random mixtures of four linear experts, plain and adaptive features.
CheckFinding check_router_hessian(const CheckEffort& effort, const RowHessian& hessian);

// Theorem 1 of Nielsen et al. 2025: w_q = (λ/d)/(s_q + α) with Σ_q 1/(s_q + α) = d/λ (Eq. 7) minimises
// Σ_q w_q s_q + λ KL(uniform ‖ w) over the simplex. Of the d solutions α only the largest, in (−min s, ∞),
// gives a point of the simplex: the theorem needs the choice that it does not make.

using WeightRule = std::function<Vector(const Vector& dispersion, double lambda)>;

/// Where a minimiser ended.
struct SimplexMinimum {
  Vector weights;
  /// √(Δᵀ∇²F Δ) of the last Newton step Δ, F the objective times d/λ: below 1/4 it bounds |w_q/w*_q − 1| by
  /// twice itself, F being self-concordant.
  double decrement = 0;
};

/// The minimum of Σ_q w_q s_q − (λ/d) Σ_q log w_q over the simplex, by damped Newton steps within it from
/// uniform weights: it knows neither α nor Eq. 7.
SimplexMinimum minimise_over_simplex(const Vector& dispersion, double lambda);

/// The largest |w_q/w*_q − 1| between the rule and the minimiser.
CheckFinding check_minimiser(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

/// Whether root j of `count`, ascending, is claimed to give a point of the simplex.
using RootClaim = std::function<bool(int j, int count)>;

bool every_root(int j, int count);
bool largest_root(int j, int count);

/// The share of all roots of Eq. 7 for which the claim is right.
CheckFinding check_root_choice(const CheckEffort& effort, const RootClaim& claim);

/// λ for given dispersions at which the weights are claimed to be proportional to 1/s.
using LambdaRule = std::function<double(const Vector& dispersion)>;

double harmonic_lambda(const Vector& dispersion);  ///< d / Σ_q(1/s_q), where α = 0

/// The largest relative difference between the optimal weights at that λ and 1/s, both of sum 1.
CheckFinding check_inverse_weights(const CheckEffort& effort, const LambdaRule& lambda = harmonic_lambda);

/// λ → ∞: d w_q = 1 − (s_q − s̄)/λ + O(λ^{−2}), s̄ the mean over the features. The largest
/// |λ (1 − d w_q) − (s_q − s̄)| in units of max s − min s, at λ a million times that.
CheckFinding check_large_lambda(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

/// λ → 0: w_q = (λ/d)/(s_q − min s) + O(λ²) for all features but the tightest, so that all mass goes there.
/// The largest relative difference, at λ/d a millionth of the smallest s_q − min s.
CheckFinding check_small_lambda(const CheckEffort& effort, const WeightRule& rule = optimal_weights);

}  // namespace moelab
