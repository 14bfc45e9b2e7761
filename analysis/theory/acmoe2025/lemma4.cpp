#include "analysis/theory/acmoe2025/lemma4.h"

#include <algorithm>
#include <cmath>

#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr const char* kEigenvalueId = "acmoe2025.lemma4";
constexpr int kEigenvalueInstances = 2000;
/// Eigenvectors nearer to the axes are drawn again: rounding would decide there.
constexpr double kSmallestEpsilon = 1e-6;

}  // namespace

double factor_as_printed(double epsilon) {
  return epsilon;
}

double corrected_factor(double epsilon) {
  return epsilon * (2 - epsilon);
}

CheckFinding check_eigenvalue_bound(const CheckEffort& effort, const BoundFactor& factor) {
  const int instances = kEigenvalueInstances * effort.seeds;
  double largest = 0, largest_epsilon = 0;
  for (int i = 0; i < instances; ++i) {
    Engine engine = check_stream(effort, kEigenvalueId, i);
    const int dim = 2 + draw_index(engine, 7);
    const Vector eigenvalues = draw_log_normal(engine, dim, 1);
    const double tilt = 0.02 + 0.1 * draw_uniform(engine);
    Matrix vectors = draw_near_axis_rotation(engine, dim, tilt);
    while (1 - vectors.diagonal().minCoeff() < kSmallestEpsilon)
      vectors = draw_near_axis_rotation(engine, dim, tilt);
    const Matrix covariance = vectors * eigenvalues.asDiagonal() * vectors.transpose();
    const double epsilon = 1 - vectors.diagonal().minCoeff();
    largest_epsilon = std::max(largest_epsilon, epsilon);
    for (int q = 0; q < dim; ++q) {
      const double widest = (eigenvalues.array() - eigenvalues[q]).abs().maxCoeff();
      const double deviation = std::abs(eigenvalues[q] - covariance(q, q));
      largest = larger(largest, deviation / (factor(epsilon) * widest));
    }
  }
  CheckFinding finding;
  finding.hypotheses = {{"v_i.b_i > 0: epsilon < 1 (largest)", largest_epsilon, largest_epsilon < 1}};
  finding.relation = Relation::at_most;
  finding.predicted = 1;
  finding.measured = largest;
  finding.error_bound = 1e-4;
  finding.error_origin = "rounding: 1e-15 of the sides, as small as 1e-6 times a difference of eigenvalues";
  finding.details = {{"instances", instances}};
  return finding;
}

std::vector<Check> acmoe2025_lemma4_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 4", id = kEigenvalueId;
  return {{id + ".as_printed", source,
           "v_i.b_i >= 1 - eps for all eigenvectors implies |lambda_i - S_ii| <= eps max_j |lambda_i - "
           "lambda_j| (largest quotient of the sides)",
           CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_eigenvalue_bound(effort, factor_as_printed); }},
          {id + ".corrected", source,
           "it implies |lambda_i - S_ii| <= (2 eps - eps^2) max_j |lambda_i - lambda_j| (the same)",
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_eigenvalue_bound(effort, corrected_factor); }}};
}

}  // namespace moelab
