#include <cmath>
#include <limits>

#include "analysis/theory/check.h"
#include "analysis/theory/specialization2025.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/gating/gating.h"

namespace moelab {
namespace {

constexpr const char* kBalanceId = "specialization2025.aux.uniform_factor";
constexpr int kBalanceExperts = 8, kBalanceActive = 2, kRowsPerExpert = 5, kBatches = 20;
/// A score that leaves every other expert without probability: exp(−50) is below the rounding of 1.
constexpr double kSure = 50;

/// A term of a batch of scores (n, E) with the K likeliest experts active.
double balance_term(const Matrix& scores, int active, const std::string& term) {
  const int rows = static_cast<int>(scores.rows()), experts = static_cast<int>(scores.cols());
  const std::size_t stride = static_cast<std::size_t>(kernels::padded(experts));
  AlignedVector<double> padded(static_cast<std::size_t>(rows) * stride, 0.0);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < experts; ++j)
      padded[static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(j)] = scores(i, j);
  }
  GatingScratch<double> scratch;
  make_gating<double>(TopKGatingOptions{.k = active, .renormalize = std::nullopt})
      ->gate({padded.data(), rows, experts}, scratch);
  RoutedBatch<double> batch;
  batch.scores = padded.data();
  batch.probabilities = scratch.probabilities.data();
  batch.routing = &scratch.routing;
  return term_value(term, batch);
}

}  // namespace

CheckFinding check_uniform_factor(const CheckEffort& effort, const std::string& term) {
  constexpr int kBalanceRows = kBalanceExperts * kRowsPerExpert;
  double largest = 0, smallest_mean = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < kBatches * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kBalanceId, repetition);
    // Row i is sent to experts i and i + 1 (mod E): by how much is free, and uneven between the experts.
    Matrix scores = draw_normals(engine, kBalanceRows, kBalanceExperts);
    const Vector lead = draw_normals(engine, kBalanceExperts, 1).cwiseAbs();
    for (Eigen::Index i = 0; i < kBalanceRows; ++i) {
      const double highest = scores.row(i).maxCoeff();
      for (int k = 0; k < kBalanceActive; ++k) {
        const Eigen::Index expert = (i + k) % kBalanceExperts;
        scores(i, expert) = highest + lead[expert] + draw_uniform(engine);
      }
    }
    const Matrix odds = scores.array().exp();
    const Matrix r = odds.array().colwise() / odds.rowwise().sum().array();
    smallest_mean = smaller(smallest_mean, r.colwise().mean().minCoeff());
    largest = larger(largest, std::abs(balance_term(scores, kBalanceActive, term) - 1));
  }
  const double undecided = balance_term(Matrix::Zero(kBalanceRows, kBalanceExperts), kBalanceActive, term);
  largest = larger(largest, std::abs(undecided - 1));
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kBalanceRows * kBalanceExperts * std::numeric_limits<double>::epsilon();
  finding.error_origin = "rounding: n E epsilon";
  finding.details = {{"smallest mean probability at equal loads, times E", kBalanceExperts * smallest_mean},
                     {"value at equal probabilities, all rows with the same experts", undecided}};
  return finding;
}

CheckFinding check_below_one(const std::string& term) {
  CheckFinding finding;
  finding.error_bound = 1e-12;
  finding.error_origin = "rounding; the sure row leaves exp(-50) to the others";
  double worst = -1;
  for (const int experts : {2, 4, 8, 16}) {
    Matrix scores = Matrix::Zero(2 * experts, experts);
    scores(2 * experts - 1, 1) = kSure;
    const double predicted = 1 - 1 / (4.0 * experts), measured = balance_term(scores, 1, term);
    if (std::abs(measured - predicted) > worst) {
      worst = std::abs(measured - predicted);
      finding.predicted = predicted;
      finding.measured = measured;
    }
    finding.details.emplace_back("value at E = " + std::to_string(experts), measured);
  }
  return finding;
}

std::vector<Check> specialization2025_balance_checks() {
  const std::string source = "Guo et al. 2025, Eq. 2, normalised";
  return {{kBalanceId, source,
           "E sum_j f_j P_j = 1 where the loads f or the mean probabilities P are uniform (largest "
           "difference from 1)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_uniform_factor(effort); }},
          {"specialization2025.aux.below_one", source,
           "E sum_j f_j P_j = 1 - 1/(4E) where all of 2E rows but one are undecided and go to one expert, "
           "the last is sure of another: balance is not the least value (the value that differs most)",
           CheckVerdict::holds, [](const CheckEffort&) { return check_below_one(); }}};
}

namespace {

const std::string kSlopePrefix = "specialization2025.";
constexpr int kSlopeRows = 16, kSlopeExperts = 6, kSlopeActive = 3, kSlopeOutputs = 5;
constexpr int kSlopeRepetitions = 8;
constexpr double kSlopeDifferenceStep = 1e-5;
/// Curvature leaves about step² = 1e-10 of a central difference, rounding 1e-11.
constexpr double kSlopeDifferenceTolerance = 1e-7;
constexpr double kShrinkage = 0.1;

/// Σ_{k≠j} of visit(j, k) in row j of a matrix of the shape of `outputs`.
template <class Visit>
Matrix sum_over_others(const Matrix& outputs, const Visit& visit) {
  Matrix sums = Matrix::Zero(outputs.rows(), outputs.cols());
  for (Eigen::Index j = 0; j < outputs.rows(); ++j) {
    for (Eigen::Index k = 0; k < outputs.rows(); ++k) {
      if (k != j) sums.row(j) += visit(j, k);
    }
  }
  return sums;
}

/// (s_ij − s̄_j).
Matrix centred(const Matrix& scores) {
  return scores.rowwise() - scores.colwise().mean();
}

Matrix central_differences(const std::function<double(const Matrix&)>& loss, Matrix at) {
  Matrix differences(at.rows(), at.cols());
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    const double kept = at.data()[i];
    at.data()[i] = kept + kSlopeDifferenceStep;
    const double above = loss(at);
    at.data()[i] = kept - kSlopeDifferenceStep;
    differences.data()[i] = (above - loss(at)) / (2 * kSlopeDifferenceStep);
    at.data()[i] = kept;
  }
  return differences;
}

/// `draw` gives the matrix of a repetition.
CheckFinding compare_slopes(const CheckEffort& effort, const std::function<double(const Matrix&)>& loss,
                            const MatrixSlope& slope, const std::function<Matrix(int)>& draw) {
  double largest = 0, least_cosine = 1;
  for (int repetition = 0; repetition < kSlopeRepetitions * effort.seeds; ++repetition) {
    const Matrix at = draw(repetition);
    const Matrix differences = central_differences(loss, at), found = slope(at);
    largest = larger(largest, (found - differences).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() /
                                  differences.cwiseAbs().maxCoeff());
    least_cosine =
        smaller(least_cosine, found.cwiseProduct(differences).sum() / (found.norm() * differences.norm()));
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kSlopeDifferenceTolerance;
  finding.error_origin = "central differences of step 1e-5: curvature about 1e-10, rounding 1e-11";
  finding.details = {{"smallest cosine of the angle to the differences", least_cosine}};
  return finding;
}

/// A term of a batch in which all of `experts` answer: outputs (n · E, o).
double slope_term(const Matrix& outputs, int experts, const std::string& term) {
  const int rows = static_cast<int>(outputs.rows()) / experts;
  const std::size_t stride = static_cast<std::size_t>(kernels::padded(static_cast<int>(outputs.cols())));
  AlignedVector<double> padded(static_cast<std::size_t>(outputs.rows()) * stride, 0.0);
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    for (Eigen::Index j = 0; j < outputs.cols(); ++j)
      padded[static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(j)] = outputs(i, j);
  }
  const std::size_t entries =
      static_cast<std::size_t>(rows) * static_cast<std::size_t>(kernels::padded(experts));
  const AlignedVector<double> scores(entries, 0.0);
  GatingScratch<double> scratch;
  make_gating<double>(SoftGatingOptions{.skip_below = 0.0})->gate({scores.data(), rows, experts}, scratch);
  return term_value(term, {scores.data(), scratch.probabilities.data(), &scratch.routing, padded.data(),
                           static_cast<int>(stride)});
}

}  // namespace

double variance_loss(const Matrix& scores) {
  return -centred(scores).squaredNorm() / static_cast<double>(scores.cols());
}

Matrix variance_slope(const Matrix& scores) {
  return -2 / static_cast<double>(scores.cols()) * centred(scores);
}

Matrix variance_slope_as_printed(const Matrix& scores) {
  const double rows = static_cast<double>(scores.rows());
  return (rows - 1) / rows * variance_slope(scores);
}

double orthogonality_loss(const Matrix& outputs) {
  const Matrix products = outputs * outputs.transpose();
  double sum = 0;
  for (Eigen::Index j = 0; j < outputs.rows(); ++j) {
    for (Eigen::Index k = 0; k < outputs.rows(); ++k) {
      if (k != j) sum += products(j, k) * products(j, k) / products(k, k);
    }
  }
  return sum;
}

Matrix orthogonality_slope(const Matrix& outputs) {
  const Vector squares = outputs.rowwise().squaredNorm();
  return sum_over_others(outputs, [&](Eigen::Index j, Eigen::Index k) -> Eigen::RowVectorXd {
    const double product = outputs.row(j).dot(outputs.row(k)), share = product / squares[j];
    return 2 * product * (1 / squares[k] + 1 / squares[j]) * outputs.row(k) -
           2 * share * share * outputs.row(j);
  });
}

Matrix orthogonality_slope_as_printed(const Matrix& outputs) {
  const Vector squares = outputs.rowwise().squaredNorm();
  return sum_over_others(outputs, [&](Eigen::Index j, Eigen::Index k) -> Eigen::RowVectorXd {
    return outputs.row(j).dot(outputs.row(k)) / squares[k] * outputs.row(k);
  });
}

CheckFinding check_variance_slope(const CheckEffort& effort, const MatrixSlope& slope) {
  return compare_slopes(effort, variance_loss, slope, [&](int repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "variance.slope", repetition);
    const Matrix odds = draw_normals(engine, kSlopeRows, kSlopeExperts).array().exp();
    return Matrix(odds.array().colwise() / odds.rowwise().sum().array());
  });
}

CheckFinding check_orthogonality_slope(const CheckEffort& effort, const MatrixSlope& slope) {
  return compare_slopes(effort, orthogonality_loss, slope, [&](int repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "orthogonality.slope", repetition);
    return draw_normals(engine, kSlopeActive, kSlopeOutputs);
  });
}

CheckFinding check_shrinking(const CheckEffort& effort, const std::string& term, int power) {
  CheckFinding finding;
  finding.predicted = std::pow(kShrinkage, power);
  finding.measured = finding.predicted;
  for (int repetition = 0; repetition < kSlopeRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "orthogonality.shrinking", repetition);
    const Matrix outputs = draw_normals(engine, kSlopeRows * kSlopeActive, kSlopeOutputs);
    const double ratio =
        slope_term(kShrinkage * outputs, kSlopeActive, term) / slope_term(outputs, kSlopeActive, term);
    if (!(std::abs(ratio - finding.predicted) <= std::abs(finding.measured - finding.predicted)))
      finding.measured = ratio;
  }
  finding.error_bound = 1e-4 * finding.predicted;
  finding.error_origin = "the guard 1e-8 beside squared lengths, at least 1e-4 after shrinking";
  return finding;
}

std::vector<Check> specialization2025_slope_checks() {
  const std::string eq7 = "Guo et al. 2025, Eq. 7 and 9", eq6 = "Guo et al. 2025, Eq. 6, 8 and 28";
  const std::string compared = " (largest relative difference from central differences)";
  return {{kSlopePrefix + "variance.slope.as_printed", eq7,
           "dL_v/ds_ij = -2(N - 1)/(E N) (s_ij - mean_j)" + compared, CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_variance_slope(effort, variance_slope_as_printed); }},
          {kSlopePrefix + "variance.slope.corrected", eq7, "dL_v/ds_ij = -(2/E)(s_ij - mean_j)" + compared,
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_variance_slope(effort, variance_slope); }},
          {kSlopePrefix + "orthogonality.slope.as_printed", eq6,
           "dL_o/dx_j = sum_k (x_j.x_k)/|x_k|^2 x_k" + compared, CheckVerdict::fails,
           [](const CheckEffort& effort) {
             return check_orthogonality_slope(effort, orthogonality_slope_as_printed);
           }},
          {kSlopePrefix + "orthogonality.slope.corrected", eq6,
           "dL_o/dx_j = 2 sum_k [(x_j.x_k)(1/|x_k|^2 + 1/|x_j|^2) x_k - (x_j.x_k)^2/|x_j|^4 x_j]" + compared,
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_orthogonality_slope(effort, orthogonality_slope); }},
          {kSlopePrefix + "orthogonality.shrinking.projection", eq6,
           "a tenth of the experts' outputs lowers L_o by the square, without any change of direction",
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_shrinking(effort, "orthogonality", 2); }},
          {kSlopePrefix + "orthogonality.shrinking.cosine", eq6,
           "a tenth of the experts' outputs leaves the form with cosines, sum of cos^2, as it is",
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_shrinking(effort, "orthogonality_cosine", 0); }}};
}

}  // namespace moelab
