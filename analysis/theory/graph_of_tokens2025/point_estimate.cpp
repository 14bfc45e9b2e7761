#include <fmt/core.h>

#include <cmath>

#include "analysis/theory/graph_of_tokens2025.h"

namespace moelab {
namespace {

constexpr int kEstimateTokens = 6, kEstimateDim = 4, kEstimateExperts = 4, kEstimateOutputs = 2,
              kEstimateHeads = 2, kEstimateQueryDim = 3;
constexpr double kSmallSigma = 0.01;
constexpr int kEstimateProblems = 4, kEstimatePairs = 4000, kCurveProblems = 20, kCurvePairs = 100;

/// The centres of u_i given X and their probabilities A_h[i, j] / H.
struct Centres {
  Matrix places;   ///< (H s, d)
  Matrix weights;  ///< (s, H s)
};

struct SequenceProblem {
  TokenMixture mixture;
  Centres centres;
  Matrix mean;  ///< MHA(X) (s, d)
};

SequenceProblem draw_sequence_problem(Engine& engine) {
  SequenceProblem problem{draw_mixture(engine, kEstimateExperts, kEstimateDim, kEstimateOutputs), {}, {}};
  const AttentionHeads heads = draw_heads(engine, kEstimateHeads, kEstimateDim, kEstimateQueryDim);
  const Matrix x = draw_normals(engine, kEstimateTokens, kEstimateDim);
  problem.centres.places.resize(kEstimateHeads * kEstimateTokens, kEstimateDim);
  problem.centres.weights.resize(kEstimateTokens, kEstimateHeads * kEstimateTokens);
  for (int h = 0; h < kEstimateHeads; ++h) {
    problem.centres.places.middleRows(h * kEstimateTokens, kEstimateTokens) = heads.centres(x, h);
    problem.centres.weights.middleCols(h * kEstimateTokens, kEstimateTokens) =
        heads.log_attention(x, h).array().exp() / kEstimateHeads;
  }
  problem.mean = heads.output(x);
  return problem;
}

/// MoE of each row, (n, o).
Matrix outputs_at(const TokenMixture& mixture, const Matrix& places) {
  Matrix outputs(places.rows(), kEstimateOutputs);
  for (Eigen::Index i = 0; i < places.rows(); ++i) {
    outputs.row(i) = mixture.output(places.row(i).transpose()).transpose();
  }
  return outputs;
}

/// The mean of MoE(c + σ g) and MoE(c − σ g) for one g at every centre, (H s, o).
Matrix pair_mean(const SequenceProblem& problem, double sigma, Engine& engine) {
  const Eigen::RowVectorXd noise = sigma * draw_normals(engine, 1, kEstimateDim);
  const Matrix& places = problem.centres.places;
  return (outputs_at(problem.mixture, places.rowwise() + noise) +
          outputs_at(problem.mixture, places.rowwise() - noise)) /
         2;
}

}  // namespace

Vector output_laplacian(const TokenMixture& mixture, const Vector& token) {
  constexpr double kStep = 1e-3;
  Vector sum = Vector::Zero(mixture.outputs());
  const Vector middle = mixture.output(token);
  for (Eigen::Index k = 0; k < token.size(); ++k) {
    const Vector step = kStep * Vector::Unit(token.size(), k);
    sum += mixture.output(token + step) + mixture.output(token - step) - 2 * middle;
  }
  return sum / (kStep * kStep);
}

CheckFinding check_noise_gap(const CheckEffort& effort, const LaplacianRule& laplacian) {
  const int pairs = kEstimatePairs * effort.seeds;
  double largest = 0;
  for (int i = 0; i < kEstimateProblems; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.point_estimate.noise", i);
    const SequenceProblem problem = draw_sequence_problem(engine);
    const Matrix& places = problem.centres.places;
    const Matrix still = outputs_at(problem.mixture, places);
    Matrix curvature(places.rows(), kEstimateOutputs);
    for (Eigen::Index c = 0; c < places.rows(); ++c) {
      curvature.row(c) = laplacian(problem.mixture, places.row(c).transpose()).transpose();
    }
    MeanOfZero mean(kEstimateTokens * kEstimateOutputs);
    for (int pair = 0; pair < pairs; ++pair) {
      const Matrix added =
          (pair_mean(problem, kSmallSigma, engine) - still) / (kSmallSigma * kSmallSigma / 2);
      const Matrix difference = problem.centres.weights * (added - curvature);
      mean.add(Eigen::Map<const Vector>(difference.data(), difference.size()));
    }
    largest = larger(largest, mean.largest_deviation());
  }
  return expected_zero(largest, 5, "5 standard errors; terms of order sigma^2 = 1e-4 are far below one",
                       {{"problems", kEstimateProblems}, {"pairs of draws", pairs}});
}

CheckFinding check_point_estimate(const CheckEffort& effort) {
  const double sigmas[] = {0, 0.1, 1, 2, std::sqrt(static_cast<double>(kEstimateDim))};
  const int problems = kCurveProblems * effort.seeds;
  double gaps[std::size(sigmas)] = {}, norms[std::size(sigmas)] = {};
  for (int i = 0; i < problems; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.point_estimate.gap", i);
    const SequenceProblem problem = draw_sequence_problem(engine);
    const Matrix estimate = outputs_at(problem.mixture, problem.mean);
    for (std::size_t s = 0; s < std::size(sigmas); ++s) {
      const int pairs = sigmas[s] == 0 ? 1 : kCurvePairs;
      Matrix outputs = Matrix::Zero(problem.centres.places.rows(), kEstimateOutputs);
      for (int pair = 0; pair < pairs; ++pair) outputs += pair_mean(problem, sigmas[s], engine) / pairs;
      const Matrix expected = problem.centres.weights * outputs;
      gaps[s] += (expected - estimate).squaredNorm();
      norms[s] += expected.squaredNorm();
    }
  }
  CheckFinding finding;
  finding.measured = std::sqrt(gaps[0] / norms[0]);
  finding.error_bound = 64 * kEpsilon;
  finding.error_origin = "rounding: at sigma = 0 the expectation is a finite sum";
  finding.details = {{"problems", problems}};
  for (std::size_t s = 1; s < std::size(sigmas); ++s) {
    finding.details.emplace_back(
        s + 1 < std::size(sigmas) ? fmt::format("at sigma = {}", sigmas[s]) : "at sigma = sqrt d",
        std::sqrt(gaps[s] / norms[s]));
  }
  return finding;
}

std::vector<Check> graph_of_tokens2025_point_estimate_checks() {
  const std::string source = "Nguyen et al. 2025, Eq. 11", id = "graph_of_tokens2025.point_estimate.";
  return {{id + "noise", source,
           "the noise of u_i adds sigma^2/2 times the mean Laplacian of MoE at the centres W_h^T x_j to "
           "E[MoE(u_i) | X] (largest deviation at sigma = 0.01, in standard errors)",
           CheckVerdict::holds, [](Effort effort) { return check_noise_gap(effort); }},
          {id + "exact_without_noise", source,
           "E[MoE(u_i) | X] = MoE(E[u_i | X]) as sigma -> 0: the estimate's only error is the noise "
           "(relative gap)",
           CheckVerdict::fails, [](Effort effort) { return check_point_estimate(effort); }}};
}

}  // namespace moelab
