#include "analysis/theory/graph_of_tokens2025/likelihoods.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/theory/extremes.h"
#include "analysis/theory/frequencies.h"
#include "sim/base/softmax.h"

namespace moelab {
namespace {

constexpr double kPosteriorSigma = 1e-3, kDistance = 1e3;
constexpr int kPosteriorDim = 8, kPosteriorCentres = 16, kPosteriorRows = 500;
/// Sums of 16 probabilities.
constexpr double kPosteriorRounding = 32 * std::numeric_limits<double>::epsilon();

struct Row {
  Vector log_prior;
  Vector token;
  Matrix centres;
};

/// Centres at the distance in random directions, or, `close`, in one direction and 1e-9 apart.
Row draw_row(Engine& engine, bool close) {
  Row row{log_softmax(draw_normals(engine, 1, kPosteriorCentres)).transpose(),
          draw_normals(engine, kPosteriorDim, 1),
          {}};
  const auto direction = [&]() -> Eigen::RowVectorXd {
    return draw_normals(engine, 1, kPosteriorDim).normalized();
  };
  const Eigen::RowVectorXd shared = direction();
  row.centres.resize(kPosteriorCentres, kPosteriorDim);
  for (int j = 0; j < kPosteriorCentres; ++j) {
    row.centres.row(j) = row.token.transpose() + kDistance * (close ? shared : direction());
    if (close) row.centres.row(j) += 1e-9 * draw_normals(engine, 1, kPosteriorDim);
  }
  return row;
}

/// The same from squared distances in long double, whose rounding is 1e-7 of log-odds here.
Vector long_posterior(const Row& row) {
  long double logs[kPosteriorCentres], peak = -std::numeric_limits<long double>::infinity(), sum = 0;
  const long double variance = static_cast<long double>(kPosteriorSigma) * kPosteriorSigma;
  for (int j = 0; j < kPosteriorCentres; ++j) {
    long double square = 0;
    for (int k = 0; k < kPosteriorDim; ++k) {
      const long double difference = static_cast<long double>(row.token[k]) - row.centres(j, k);
      square += difference * difference;
    }
    logs[j] = row.log_prior[j] - square / (2 * variance);
    peak = std::max(peak, logs[j]);
  }
  Vector probabilities(kPosteriorCentres);
  for (const long double value : logs) sum += std::exp(value - peak);
  for (int j = 0; j < kPosteriorCentres; ++j)
    probabilities[j] = static_cast<double>(std::exp(logs[j] - peak) / sum);
  return probabilities;
}

}  // namespace

Vector log_space_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres,
                           double sigma) {
  const Vector log_joint = log_prior + log_likelihood_ratios(token, centres, sigma);
  return log_softmax(log_joint.transpose()).transpose();
}

Vector product_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma) {
  const double volume = std::pow(2 * std::numbers::pi * sigma * sigma, static_cast<double>(token.size()) / 2);
  const Vector squares = (centres.rowwise() - token.transpose()).rowwise().squaredNorm();
  Vector joint(log_prior.size());
  for (Eigen::Index j = 0; j < joint.size(); ++j) {
    joint[j] = std::exp(log_prior[j]) * std::exp(-squares[j] / (2 * sigma * sigma)) / volume;
  }
  return (joint / joint.sum()).array().log();
}

CheckFinding check_proper(const CheckEffort& effort, const PositionPosterior& rule) {
  Engine engine = check_stream(effort, "graph_of_tokens2025.likelihoods.proper", 0);
  const int rows = kPosteriorRows * effort.seeds;
  int proper = 0;
  for (int i = 0; i < rows; ++i) {
    const Row row = draw_row(engine, i % 2 == 0);
    const Vector probabilities = rule(row.log_prior, row.token, row.centres, kPosteriorSigma).array().exp();
    if (std::abs(probabilities.sum() - 1) <= kPosteriorRounding) ++proper;
  }
  return every_instance(proper, rows, "none: each row is judged beyond rounding");
}

CheckFinding check_precise(const CheckEffort& effort, const PositionPosterior& rule) {
  Engine engine = check_stream(effort, "graph_of_tokens2025.likelihoods.precise", 0);
  double largest = 0, mass = 0;
  const int rows = kPosteriorRows * effort.seeds;
  for (int i = 0; i < rows; ++i) {
    const Row row = draw_row(engine, true);
    const Vector probabilities = rule(row.log_prior, row.token, row.centres, kPosteriorSigma).array().exp();
    largest = larger(largest, (probabilities - long_posterior(row)).cwiseAbs().maxCoeff());
    mass += probabilities.maxCoeff() / rows;
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = 1e-6;
  finding.error_origin = "rounding of squares of 1e3 in long double, over 2 sigma^2";
  finding.details = {{"rows", rows}, {"largest probability of a row, mean", mass}};
  return finding;
}

std::vector<Check> graph_of_tokens2025_likelihood_checks() {
  const std::string source = "Nguyen et al. 2025, Lemma 1", id = "graph_of_tokens2025.likelihoods.";
  return {
      {id + "as_printed", source,
       "the posterior as a quotient of products with densities, sigma = 1e-3 and centres 1e3 away: share of "
       "rows that are probabilities",
       CheckVerdict::fails,
       [](const CheckEffort& effort) { return check_proper(effort, product_posterior); }},
      {id + "corrected", source, "the same from logarithms, each relative to the nearest centre",
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_proper(effort, log_space_posterior); }},
      {id + "precise", source,
       "the same for centres 1e-9 apart, so that all keep some mass: difference to long double (largest)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_precise(effort); }}};
}

}  // namespace moelab
