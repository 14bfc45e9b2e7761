#include "analysis/theory/acmoe2025/proposition2.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/geometry/conditioning.h"
#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr int kScalingDim = 8;
constexpr int kScalingInstances = 20000;
constexpr double kTilt = 0.05;
/// Eigenvalues of matrices of order 8 have relative errors of about 8 ε κ, and κ is below 1e7 here.
constexpr double kScalingRounding = 1e-7;

CheckFinding largest_value(double largest, double predicted, int instances) {
  CheckFinding finding;
  finding.predicted = predicted;
  finding.measured = largest;
  finding.error_bound = kScalingRounding;
  finding.error_origin = "rounding: 8 epsilon times the largest condition number, with a margin";
  finding.details = {{"instances", instances}};
  return finding;
}

double condition_after(const Matrix& covariance, const ScalingRule& rule) {
  return conditioning(transformed_covariance(covariance, rule(covariance))).condition;
}

}  // namespace

Vector scale_by_deviation(const Matrix& covariance) {
  return inverse_weights(covariance.diagonal().cwiseSqrt());
}

Vector scale_by_variance(const Matrix& covariance) {
  return inverse_weights(covariance.diagonal());
}

Matrix draw_diagonal_covariance(Engine& engine) {
  return draw_log_normal(engine, kScalingDim, 2).asDiagonal();
}

Matrix draw_near_axis_covariance(Engine& engine) {
  const Vector eigenvalues = draw_log_normal(engine, kScalingDim, 2);
  const Matrix rotation = draw_near_axis_rotation(engine, kScalingDim, kTilt);
  return rotation * eigenvalues.asDiagonal() * rotation.transpose();
}

Matrix draw_wishart_covariance(Engine& engine) {
  return draw_wishart(engine, kScalingDim, 2 * kScalingDim);
}

CheckFinding check_sphering(const CheckEffort& effort, const ScalingRule& rule) {
  const int instances = kScalingInstances * effort.seeds;
  Engine engine = check_stream(effort, "acmoe2025.proposition2.sphering", 0);
  double largest = 0;
  for (int i = 0; i < instances; ++i)
    largest = larger(largest, condition_after(draw_diagonal_covariance(engine), rule));
  return largest_value(largest, 1, instances);
}

CheckFinding check_unchanged(const CheckEffort& effort, const ScalingRule& rule) {
  const int instances = kScalingInstances * effort.seeds;
  Engine engine = check_stream(effort, "acmoe2025.proposition2.unchanged", 0);
  double largest = 0;
  for (int i = 0; i < instances; ++i) {
    const Matrix covariance = draw_diagonal_covariance(engine);
    const double ratio = condition_after(covariance, rule) / conditioning(covariance).condition;
    largest = larger(largest, std::abs(ratio - 1));
  }
  return largest_value(largest, 0, instances);
}

ConditioningFailures count_conditioning_failures(const CheckEffort& effort, const CovarianceLaw& law,
                                                 const ScalingRule& rule) {
  ConditioningFailures count;
  count.instances = kScalingInstances * effort.seeds;
  Engine engine = check_stream(effort, "acmoe2025.proposition2", 0);
  for (int i = 0; i < count.instances; ++i) {
    const Matrix covariance = law(engine);
    const double ratio = condition_after(covariance, rule) / conditioning(covariance).condition;
    count.largest_ratio = larger(count.largest_ratio, ratio);
    if (!(ratio <= 1 + kScalingRounding)) ++count.failures;
  }
  return count;
}

CheckFinding check_near_axis(const CheckEffort& effort, const ScalingRule& rule) {
  const ConditioningFailures count = count_conditioning_failures(effort, draw_near_axis_covariance, rule);
  CheckFinding finding = every_instance(count.instances - count.failures, count.instances,
                                        "none: each instance is judged beyond rounding");
  finding.details.emplace_back("largest kappa(M S M) / kappa(S)", count.largest_ratio);
  return finding;
}

CheckFinding check_wishart(const CheckEffort& effort, const ScalingRule& rule, double predicted,
                           double unit) {
  const ConditioningFailures count = count_conditioning_failures(effort, draw_wishart_covariance, rule);
  CheckFinding finding = measured_frequency(count.failures, count.instances, predicted, unit);
  finding.details.emplace_back("largest kappa(M S M) / kappa(S)", count.largest_ratio);
  return finding;
}

std::vector<Check> acmoe2025_proposition2_checks() {
  const std::string source = "Nielsen et al. 2025, Proposition 2";
  const std::string id = "acmoe2025.proposition2.";
  return {
      {id + "diagonal.deviation", source, "kappa(M S M) = 1 for diagonal S and M = diag(S)^(-1/2) (largest)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_sphering(effort); }},
      {id + "diagonal.variance", source,
       "kappa(M S M) = kappa(S) for diagonal S and M = diag(S)^-1: no gain (largest relative difference)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_unchanged(effort); }},
      {id + "near_axis.deviation", source,
       "kappa(M S M) <= kappa(S) for M = diag(S)^(-1/2) and eigenvectors of S near the axes: share of random "
       "S",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_near_axis(effort); }},
      {id + "near_axis.variance", source,
       "the same for M = diag(S)^-1, which even near the axes is no better than chance", CheckVerdict::fails,
       [](const CheckEffort& effort) { return check_near_axis(effort, scale_by_variance); }},
      {id + "wishart.deviation", source,
       "kappa(M S M) > kappa(S), against the proposition, for M = diag(S)^(-1/2) and S ~ Wishart(I, 16), d = "
       "8: frequency, a regression against .05 of an earlier simulation",
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_wishart(effort, scale_by_deviation, 0.05, 0.01); }},
      {id + "wishart.variance", source,
       "the same for M = diag(S)^-1: frequency, a regression against .5 of an earlier simulation",
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_wishart(effort, scale_by_variance, 0.5, 0.1); }}};
}

}  // namespace moelab
