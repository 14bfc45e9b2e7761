#include "analysis/theory/specialization2025/balance.h"

#include <cmath>
#include <limits>

#include "analysis/theory/extremes.h"
#include "analysis/theory/specialization2025/terms.h"
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

}  // namespace moelab
