#include "analysis/theory/acmoe2025/pooled_moment.h"

#include <algorithm>
#include <numeric>

#include "analysis/geometry/conditioning.h"

namespace moelab {
namespace {

constexpr int kPooledClusters = 16, kPooledDim = 24, kTightFeatures = 6, kPooledDraws = 400;
constexpr double kTightDeviation = 0.15, kWideDeviation = 1.5;
/// Of the law of the scenarios, for which the proposition is used.
constexpr double kShippedMeanStd = 0.6;

Vector draw_deviations(Engine& engine) {
  std::vector<Eigen::Index> features(kPooledDim);
  std::iota(features.begin(), features.end(), 0);
  Vector deviations = Vector::Constant(kPooledDim, kWideDeviation);
  for (std::size_t i = 0; i < kTightFeatures; ++i) {
    const std::size_t left = features.size() - i;
    std::swap(features[i],
              features[i + static_cast<std::size_t>(draw_uniform(engine) * static_cast<double>(left))]);
    deviations[features[i]] = kTightDeviation;
  }
  return deviations;
}

/// κ of the pooled second moment with the clusters' own scales over that without.
double pooled_quotient(Engine& engine, double mean_std) {
  Matrix plain = Matrix::Zero(kPooledDim, kPooledDim), scaled = plain;
  for (int c = 0; c < kPooledClusters; ++c) {
    const Vector mean = draw_normals(engine, kPooledDim, 1, mean_std), deviations = draw_deviations(engine);
    Matrix moment = mean * mean.transpose();
    moment.diagonal() += deviations.cwiseAbs2();
    plain += moment;
    scaled += transformed_covariance(moment, inverse_weights(deviations));
  }
  return conditioning(scaled).condition / conditioning(plain).condition;
}

}  // namespace

CheckFinding check_pooled_moment(const CheckEffort& effort, double mean_std) {
  const int draws = kPooledDraws * effort.seeds;
  Engine engine = check_stream(effort, "acmoe2025.proposition2.pooled", 0);
  std::vector<double> quotients;
  for (int i = 0; i < draws; ++i) quotients.push_back(pooled_quotient(engine, mean_std));
  std::sort(quotients.begin(), quotients.end());
  const auto hits = std::upper_bound(quotients.begin(), quotients.end(), 1.0) - quotients.begin();
  CheckFinding finding = every_instance(static_cast<int>(hits), draws, "none: every quotient is far from 1");
  finding.details.emplace_back("median quotient", quotients[quotients.size() / 2]);
  finding.details.emplace_back("smallest quotient", quotients.front());
  finding.details.emplace_back("largest quotient", quotients.back());
  return finding;
}

std::vector<Check> acmoe2025_pooled_moment_checks() {
  const std::string source = "Nielsen et al. 2025, Proposition 2", id = "acmoe2025.proposition2.pooled.";
  return {{id + "shipped_means", source,
           "kappa of the second moment pooled over 16 clusters, each scaled by its own M = diag(1/s), is at "
           "most that without M: share of draws of the law of scenarios/acmoe2025",
           CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_pooled_moment(effort, kShippedMeanStd); }},
          {id + "zero_means", source, "the same where all means are 0", CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_pooled_moment(effort, 0); }}};
}

}  // namespace moelab
