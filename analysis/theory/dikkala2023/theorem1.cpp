#include "analysis/theory/dikkala2023/theorem1.h"

#include <cmath>

#include "analysis/theory/extremes.h"
#include "sim/base/types.h"

namespace moelab {
namespace {

constexpr const char* kShrinkageId = "dikkala2023.theorem1.shrinkage";
constexpr int kIrrelevantFeatures = 6, kShrinkageExperts = 4, kDirections = 3, kShrinkageDraws = 20000;

/// The variances of the columns.
Vector variances(const Matrix& samples) {
  const Matrix centred = samples.rowwise() - samples.colwise().mean();
  return centred.colwise().squaredNorm().transpose() / static_cast<double>(samples.rows() - 1);
}

}  // namespace

double shrinkage_factor_as_printed(double epsilon) {
  return std::sqrt(1 - (1 - epsilon) * (1 - epsilon));
}

double shrinkage_factor(double epsilon) {
  return 1 - (1 - epsilon) * (1 - epsilon);
}

CheckFinding check_shrinkage(const CheckEffort& effort, const ShrinkageFactor& factor) {
  // More seeds are more draws, not more comparisons: the largest of many would pass any number of errors.
  const int draws = kShrinkageDraws * effort.seeds;
  Engine engine = check_stream(effort, kShrinkageId, 0);
  const Matrix weights = draw_normals(engine, kShrinkageExperts, kIrrelevantFeatures);
  const Matrix directions = draw_normals(engine, kDirections, kShrinkageExperts);
  const Matrix scores = directions * weights;  // of W₂ x₂ along the directions, for x₂ ~ N(0, I)
  double largest = 0;
  for (const double epsilon : {0.05, 0.3, 0.7}) {
    const Matrix before = draw_normals(engine, draws, kIrrelevantFeatures) * scores.transpose();
    const Matrix after =
        (1 - epsilon) * draw_normals(engine, draws, kIrrelevantFeatures) * scores.transpose() +
        std::sqrt(factor(epsilon)) * draw_normals(engine, draws, kIrrelevantFeatures) * scores.transpose();
    // The logarithm of a Gaussian sample's variance has standard error √(2/n).
    const Vector difference = (variances(after).array() / variances(before).array()).log();
    largest = larger(largest, difference.cwiseAbs().maxCoeff<Eigen::PropagateNaN>() / std::sqrt(4.0 / draws));
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kStandardErrors;
  finding.error_origin = "4 standard errors";
  finding.details = {{"draws of each side", draws}, {"comparisons", 3 * kDirections}};
  return finding;
}

std::vector<Check> dikkala2023_theorem1_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 1 (3)";
  const std::string measured = " (largest difference of variances in standard errors)";
  return {{std::string(kShrinkageId) + ".as_printed", source,
           "(1 - e) W2 x2 + z is distributed as W2 x2 for Cov(z) = sqrt(1 - (1 - e)^2) Cov(W2 x2)" + measured,
           CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_shrinkage(effort, shrinkage_factor_as_printed); }},
          {std::string(kShrinkageId) + ".corrected", source,
           "(1 - e) W2 x2 + z is distributed as W2 x2 for Cov(z) = (1 - (1 - e)^2) Cov(W2 x2)" + measured,
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_shrinkage(effort, shrinkage_factor); }}};
}

}  // namespace moelab
