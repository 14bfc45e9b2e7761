#include "analysis/theory/acmoe2025/lemma2.h"

#include <algorithm>
#include <limits>

#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr int kAssignmentDim = 4, kAssignmentClusters = 6;
constexpr int kAssignmentProblems = 6, kAssignmentDraws = 100000;

/// Means N(0, 4 I), covariances Wishart(I, 2d)/(2d) with rows and columns scaled by log-normal factors, so
/// that features differ in width.
GaussianClusters draw_clusters(Engine& engine, int count) {
  GaussianClusters clusters{draw_normals(engine, count, kAssignmentDim, 2), {}};
  for (int i = 0; i < count; ++i) {
    const Vector widths = draw_log_normal(engine, kAssignmentDim, 0.5);
    const Matrix shape = draw_wishart(engine, kAssignmentDim, 2 * kAssignmentDim) / (2 * kAssignmentDim);
    clusters.covariances.emplace_back(widths.asDiagonal() * shape * widths.asDiagonal());
  }
  return clusters;
}

Matrix draw_noise(Engine& engine) {
  return draw_wishart(engine, kAssignmentDim, 2 * kAssignmentDim) / (4 * kAssignmentDim);
}

Metrics metrics_of(const GaussianClusters& clean, const CovarianceMetric& rule) {
  Metrics metrics;
  for (const Matrix& covariance : clean.covariances) metrics.push_back(rule(covariance));
  return metrics;
}

CheckFinding in_standard_errors(double largest, Relation relation, double mean_share) {
  CheckFinding finding;
  finding.relation = relation;
  finding.measured = largest;
  finding.error_bound = kStandardErrors;
  finding.error_origin = "4 standard errors";
  finding.details = {{"mean share drawn", mean_share}};
  return finding;
}

}  // namespace

Matrix euclidean_metric(const Matrix& covariance) {
  return Matrix::Identity(covariance.rows(), covariance.cols());
}

Matrix adaptive_metric(const Matrix& covariance) {
  return inverse_weights(covariance.diagonal().cwiseSqrt()).asDiagonal();
}

CheckFinding check_pair(const CheckEffort& effort, const CovarianceMetric& metric,
                        const MisassignmentFormula& formula) {
  double largest = 0, mean_share = 0;
  for (int problem = 0; problem < kAssignmentProblems; ++problem) {
    Engine engine = check_stream(effort, "acmoe2025.lemma2.pair", problem);
    const GaussianClusters clean = draw_clusters(engine, 2);
    const GaussianClusters noisy = contaminated(clean, draw_noise(engine));
    const Metrics metrics = metrics_of(clean, metric);
    const Vector difference = noisy.means.row(1) - noisy.means.row(0);
    // More seeds are more draws: the largest of many comparisons would pass any number of errors.
    const DrawnShare share = drawn_misassignment(noisy, metrics, 0, kAssignmentDraws * effort.seeds, engine);
    const double probability = formula(difference, noisy.covariances[0], metrics[0]);
    largest = larger(largest, std::abs(share.value - probability) / share.standard_error);
    mean_share += share.value / kAssignmentProblems;
  }
  return in_standard_errors(largest, Relation::equal, mean_share);
}

MisassignmentBounds nearest_only(const GaussianClusters& clusters, const Metrics& metrics) {
  double nearest = std::numeric_limits<double>::infinity(), probability = 0;
  for (Eigen::Index j = 1; j < clusters.means.rows(); ++j) {
    const Vector difference = clusters.means.row(j) - clusters.means.row(0);
    const double distance = difference.dot(metrics[0] * difference);
    if (distance >= nearest) continue;
    nearest = distance;
    probability = misassignment_probability(difference, clusters.covariances[0], metrics[0]);
  }
  return {probability, probability};
}

MisassignmentBounds pairwise_bounds(const GaussianClusters& clusters, const Metrics& metrics) {
  const Matrix pairwise = pairwise_misassignment(clusters, metrics);
  return {pairwise.row(0).maxCoeff(), union_bounds(pairwise)[0]};
}

CheckFinding check_many(const CheckEffort& effort, const BoundRule& rule) {
  double largest = -std::numeric_limits<double>::infinity(), mean_share = 0;
  for (int problem = 0; problem < kAssignmentProblems; ++problem) {
    Engine engine = check_stream(effort, "acmoe2025.lemma2.many", problem);
    const GaussianClusters clean = draw_clusters(engine, kAssignmentClusters);
    const GaussianClusters noisy = contaminated(clean, draw_noise(engine));
    for (const CovarianceMetric metric : {euclidean_metric, adaptive_metric}) {
      const Metrics metrics = metrics_of(clean, metric);
      const DrawnShare share =
          drawn_misassignment(noisy, metrics, 0, kAssignmentDraws * effort.seeds, engine);
      const MisassignmentBounds bounds = rule(noisy, metrics);
      const double outside = larger(bounds.lower - share.value, share.value - bounds.upper);
      largest = larger(largest, outside / share.standard_error);
      mean_share += share.value / (2 * kAssignmentProblems);
    }
  }
  return in_standard_errors(largest, Relation::at_most, mean_share);
}

std::vector<Check> acmoe2025_lemma2_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 2";
  const std::string id = "acmoe2025.lemma2.";
  return {
      {id + "euclidean", source,
       "of two clusters, Pr[wrong] = 1 - Phi(|dmu|^2 / (2 sqrt(dmu'(S + S_eps) dmu))) for the nearest mean "
       "(largest difference from draws in standard errors)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_pair(effort, euclidean_metric); }},
      {id + "metric", source,
       "Pr[wrong] = 1 - Phi(dmu' M dmu / (2 sqrt(dmu' M (S + S_eps) M dmu))) for the nearest mean in the "
       "metric M = diag(1/s) of the clean cluster (the same)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_pair(effort, adaptive_metric); }},
      {id + "many.as_printed", source,
       "of six clusters, the formula for the nearest other mean gives Pr[wrong] (largest difference from "
       "draws in standard errors)",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_many(effort, nearest_only); }},
      {id + "many.corrected", source,
       "of six clusters, the largest pairwise probability <= Pr[wrong] <= their sum (largest violation in "
       "standard errors of the draws)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_many(effort, pairwise_bounds); }}};
}

}  // namespace moelab
