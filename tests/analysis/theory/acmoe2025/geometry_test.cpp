#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/acmoe2025.h"

namespace moelab::geometry_test {
namespace {

const CheckEffort kEffort;

/// Wide features count the more.
Vector upside_down(const Vector& dispersion) {
  return inverse_weights(dispersion.cwiseInverse());
}

}  // namespace

TEST_CASE("frequencies are judged within their error") {
  CHECK(verdict_of(measured_frequency(402, 1000, 0.4, 0.01)) == CheckVerdict::inconclusive);
  CHECK(verdict_of(measured_frequency(40200, 100000, 0.4, 0.01)) == CheckVerdict::regression);
  CHECK(verdict_of(measured_frequency(42000, 100000, 0.4, 0.01)) == CheckVerdict::fails);
  CHECK(verdict_of(every_instance(9999, 10000, "")) == CheckVerdict::fails);
}

TEST_CASE("lemma 1: the criterion, the hypothesis, and the frequencies without it") {
  CHECK(verdict_of(check_separation_criterion(kEffort)) == CheckVerdict::holds);
  // Without the scaling to mean 1 the criterion is not claimed.
  const auto unscaled = [](const Vector& s) -> Vector { return s.cwiseInverse(); };
  CHECK(verdict_of(check_separation_criterion(kEffort, unscaled)) == CheckVerdict::hypotheses_not_met);
  CHECK(verdict_of(check_separated_where_tight(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_separated_where_tight(kEffort, upside_down)) == CheckVerdict::fails);
  CHECK(verdict_of(check_separation_failures(kEffort, 0.5, 0.54)) == CheckVerdict::regression);
  CHECK(verdict_of(check_separation_failures(kEffort, 0.5, 0.57)) == CheckVerdict::fails);
  const auto variance_weights = [](const Vector& s) -> Vector { return inverse_weights(s.cwiseAbs2()); };
  CHECK(verdict_of(check_separation_failures(kEffort, 0.5, 0.54, variance_weights)) == CheckVerdict::fails);
}

TEST_CASE("lemma 2 holds in both metrics; without the factor 2, or M in the variance, it fails") {
  CHECK(verdict_of(check_pair(kEffort, euclidean_metric)) == CheckVerdict::holds);
  CHECK(verdict_of(check_pair(kEffort, adaptive_metric)) == CheckVerdict::holds);
  const auto twice = [](const Vector& difference, const Matrix& covariance, const Matrix& metric) {
    return misassignment_probability(2 * difference, covariance, metric);
  };
  CHECK(verdict_of(check_pair(kEffort, euclidean_metric, twice)) == CheckVerdict::fails);
  // √(δᵀMΣδ) in place of √(δᵀMΣMδ).
  const auto one_metric = [](const Vector& difference, const Matrix& covariance, const Matrix& metric) {
    const Vector direction = metric * difference;
    const double spread = std::sqrt(direction.dot(covariance * difference));
    return std::erfc(difference.dot(direction) / (2 * spread) / std::sqrt(2.0)) / 2;
  };
  CHECK(verdict_of(check_pair(kEffort, adaptive_metric, one_metric)) == CheckVerdict::fails);
}

TEST_CASE("lemma 2 for six clusters: the truth lies between the bounds, not at the nearest mean") {
  CHECK(verdict_of(check_many(kEffort, pairwise_bounds)) == CheckVerdict::holds);
  CHECK(verdict_of(check_many(kEffort, nearest_only)) == CheckVerdict::fails);
  const auto largest_above = [](const GaussianClusters& clusters, const Metrics& metrics) {
    return MisassignmentBounds{0, pairwise_bounds(clusters, metrics).lower};
  };
  CHECK(verdict_of(check_many(kEffort, largest_above)) == CheckVerdict::fails);
  const auto union_below = [](const GaussianClusters& clusters, const Metrics& metrics) {
    return MisassignmentBounds{pairwise_bounds(clusters, metrics).upper, 1};
  };
  CHECK(verdict_of(check_many(kEffort, union_below)) == CheckVerdict::fails);
}

TEST_CASE("proposition 1: never clean, about 40 % contaminated, never with M re-estimated") {
  CHECK(verdict_of(check_fewer_errors(kEffort, false, metric_of_clean)) == CheckVerdict::holds);
  CHECK(verdict_of(check_fewer_errors(kEffort, true, metric_of_contaminated)) == CheckVerdict::holds);
  CHECK(verdict_of(check_fewer_errors(kEffort, true, metric_of_clean)) == CheckVerdict::fails);
  const auto wrong_way = [](const Vector& deviation, const Vector&) { return upside_down(deviation); };
  CHECK(verdict_of(check_fewer_errors(kEffort, false, wrong_way)) == CheckVerdict::fails);
  CHECK(verdict_of(check_more_errors(kEffort)) == CheckVerdict::regression);
  CHECK(verdict_of(check_more_errors(kEffort, metric_of_contaminated)) == CheckVerdict::fails);
}

TEST_CASE("proposition 1: the isotropic threshold by hand, exact and off") {
  // σ = (1, 2), equal weights: E[1/σ] = 3/4, E[σ²] = 5/2, Var(1/σ) = 1/16, (9/16 · 5/2 − 1) · 16 = 6.5.
  CHECK(isotropic_threshold(Vector{{1.0, 2.0}}, Vector{{3.0, -3.0}}) == doctest::Approx(6.5));
  CHECK(verdict_of(check_isotropic(kEffort)) == CheckVerdict::holds);
  const auto off = [](const Vector& deviation, const Vector& difference) {
    return 1.01 * isotropic_threshold(deviation, difference);
  };
  CHECK(verdict_of(check_isotropic(kEffort, off)) == CheckVerdict::fails);
}

TEST_CASE("proposition 1: the ceiling is the inverse of the whole covariance") {
  CHECK(verdict_of(check_ceiling(kEffort)) == CheckVerdict::holds);
  const auto ignores_noise = [](const Matrix& covariance, const Matrix&) {
    return best_metric(covariance, Matrix::Zero(covariance.rows(), covariance.cols()));
  };
  CHECK(verdict_of(check_ceiling(kEffort, ignores_noise)) == CheckVerdict::fails);
}

TEST_CASE("proposition 2: diagonal, near the axes and Wishart, each measure against the other") {
  CHECK(verdict_of(check_sphering(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_sphering(kEffort, scale_by_variance)) == CheckVerdict::fails);
  CHECK(verdict_of(check_unchanged(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_unchanged(kEffort, scale_by_deviation)) == CheckVerdict::fails);
  CHECK(verdict_of(check_near_axis(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_near_axis(kEffort, scale_by_variance)) == CheckVerdict::fails);
  CHECK(verdict_of(check_wishart(kEffort, scale_by_deviation, 0.05, 0.01)) == CheckVerdict::regression);
  CHECK(verdict_of(check_wishart(kEffort, scale_by_variance, 0.5, 0.1)) == CheckVerdict::regression);
  CHECK(verdict_of(check_wishart(kEffort, scale_by_variance, 0.05, 0.01)) == CheckVerdict::fails);
  CHECK(count_conditioning_failures(kEffort, draw_diagonal_covariance, scale_by_deviation).failures == 0);
}

TEST_CASE("proposition 2: the Hessian is no multiple of the second moment, nor its Gauss-Newton part") {
  CHECK(verdict_of(check_router_hessian(kEffort, exact_curvature)) == CheckVerdict::holds);
  CHECK(verdict_of(check_router_hessian(kEffort, constant_curvature)) == CheckVerdict::fails);
  const auto gauss_newton = [](const MixtureSamples& batch) {
    const int experts = static_cast<int>(batch.probabilities.cols());
    return expert_block(router_hessian(batch, RouterCurvature::gauss_newton), experts, 0);
  };
  CHECK(verdict_of(check_router_hessian(kEffort, gauss_newton)) == CheckVerdict::fails);
}

TEST_CASE("lemma 4 fails with the printed factor, holds with the corrected one, which is sharp") {
  CHECK(verdict_of(check_eigenvalue_bound(kEffort, factor_as_printed)) == CheckVerdict::fails);
  CHECK(verdict_of(check_eigenvalue_bound(kEffort, corrected_factor)) == CheckVerdict::holds);
  const auto slightly_smaller = [](double epsilon) { return 0.999 * corrected_factor(epsilon); };
  CHECK(verdict_of(check_eigenvalue_bound(kEffort, slightly_smaller)) == CheckVerdict::fails);
}

TEST_CASE("lemma 1 needs a weight above the mean on every tight feature, beyond the proof's hypothesis") {
  CHECK(verdict_of(check_concentrated(kEffort, false)) == CheckVerdict::fails);
  CHECK(verdict_of(check_concentrated(kEffort, true)) == CheckVerdict::holds);
}

TEST_CASE("proposition 1 holds for a dot product only with the terms that it lacks") {
  for (const ClusterLaw& law : {ClusterLaw(draw_unrelated_pair), ClusterLaw(draw_shipped_clusters)}) {
    CHECK(verdict_of(check_router_errors(kEffort, law, dot_product_margin)) == CheckVerdict::fails);
    CHECK(verdict_of(check_router_errors(kEffort, law, centred_margin)) == CheckVerdict::holds);
  }
}

TEST_CASE("proposition 2 with the factor of the row: the condition number does not always fall") {
  CHECK(verdict_of(check_pooled_hessian(kEffort, 0.6)) == CheckVerdict::fails);
  CHECK(verdict_of(check_pooled_hessian(kEffort, 0)) == CheckVerdict::fails);
}

TEST_CASE("remark 3: the exponent is that of the normal tail, no other") {
  CHECK(verdict_of(check_decay(kEffort)) == CheckVerdict::holds);
  const auto twice = [](const Vector& direction, const Matrix& covariance) {
    return 2 * gaussian_decay(direction, covariance);
  };
  CHECK(verdict_of(check_decay(kEffort, twice)) == CheckVerdict::fails);
}

TEST_CASE("remark 4: one linear map changes EM of spherical components alone") {
  const CheckFinding own = check_em(kEffort, false), spherical = check_em(kEffort, true);
  CHECK(verdict_of(own) == CheckVerdict::fails);
  CHECK(own.measured == 0);
  CHECK(own.details[1].second == doctest::Approx(own.details[2].second).epsilon(1e-4));
  CHECK(verdict_of(spherical) == CheckVerdict::fails);
  CHECK(spherical.measured > 0.5);
  CHECK(verdict_of(check_mean_em(kEffort, true)) == CheckVerdict::holds);
  CHECK(verdict_of(check_mean_em(kEffort, false)) == CheckVerdict::fails);
}

TEST_CASE("proposition 2 on pooled clusters: right without means, wrong with those of the scenarios") {
  const CheckFinding shipped = check_pooled_moment(kEffort, 0.6), centred = check_pooled_moment(kEffort, 0);
  CHECK(verdict_of(shipped) == CheckVerdict::fails);
  CHECK(verdict_of(centred) == CheckVerdict::holds);
  // Means over 400 draws of an independent computation.
  CHECK(shipped.details[1].second == doctest::Approx(8.5).epsilon(0.1));
  CHECK(centred.details[1].second == doctest::Approx(0.55).epsilon(0.1));
}

}  // namespace moelab::geometry_test
