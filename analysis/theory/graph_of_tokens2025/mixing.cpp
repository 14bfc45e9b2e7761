#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/metrics/routing.h"
#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr int kMixingSequences = 1000, kMixingFrequencySequences = 20000;
constexpr double kSmallTemperature = 1e-10;
/// Means of 16 sums of 16 products of order one.
constexpr double kMixingRounding = 128 * std::numeric_limits<double>::epsilon();

RoutedSequence draw_similar(Engine& engine, double temperature) {
  return draw_sequence(engine, MixingKind::similarity, temperature);
}

/// u_i^T u_i − max_{j ≠ i} u_i^T u_j for each token, (s).
Vector self_margins(const Matrix& tokens) {
  Matrix products = tokens * tokens.transpose();
  const Vector own = products.diagonal();
  products.diagonal().setConstant(-std::numeric_limits<double>::infinity());
  return own - products.rowwise().maxCoeff();
}

}  // namespace

CheckFinding check_concavity(const CheckEffort& effort) {
  int hits = 0, tokens = 0;
  double smallest = std::numeric_limits<double>::infinity();
  for (const double temperature : source_parameters()) {
    for (int i = 0; i < kMixingSequences * effort.seeds; ++i) {
      Engine engine = check_stream(effort, "graph_of_tokens2025.mixing.concavity", i);
      const RoutedSequence sequence = draw_similar(engine, temperature);
      const Matrix similarity = sequence.log_scores.array().exp();
      const Vector gains = routing_entropies(similarity * sequence.routing) - similarity * sequence.entropies;
      smallest = smaller(smallest, gains.minCoeff());
      hits += static_cast<int>((gains.array() >= -kMixingRounding).count());
      tokens += static_cast<int>(gains.size());
    }
  }
  CheckFinding finding = every_instance(hits, tokens, "none: each token is judged beyond rounding");
  finding.details.emplace_back("smallest gain, nats", smallest);
  return finding;
}

Matrix mean_of_permutations(Engine& engine, const Matrix& log_scores) {
  constexpr int kPermutations = 5;
  const int tokens = static_cast<int>(log_scores.rows());
  const Matrix weights = softmax(draw_normals(engine, 1, kPermutations));
  Matrix mixing = Matrix::Zero(tokens, tokens);
  for (int k = 0; k < kPermutations; ++k) {
    const std::vector<int> order = draw_permutation(engine, tokens);
    for (int i = 0; i < tokens; ++i) mixing(i, order[static_cast<std::size_t>(i)]) += weights(0, k);
  }
  return mixing;
}

Matrix softmax_mixing(Engine&, const Matrix& log_scores) {
  return log_scores.array().exp();
}

CheckFinding check_doubly_stochastic(const CheckEffort& effort, const MixingRule& rule) {
  int hits = 0;
  double smallest = std::numeric_limits<double>::infinity(), deviation = 0;
  const int sequences = kMixingSequences * effort.seeds;
  for (int i = 0; i < sequences; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.mixing.doubly_stochastic", i);
    const RoutedSequence sequence = draw_similar(engine, 1);
    const Matrix mixing = rule(engine, sequence.log_scores);
    deviation = larger(deviation, (mixing.colwise().sum().array() - 1).abs().maxCoeff());
    const double gain = routing_entropy(mixing * sequence.routing) - sequence.entropies.mean();
    smallest = smaller(smallest, gain);
    if (gain >= -kMixingRounding) ++hits;
  }
  CheckFinding finding = every_instance(hits, sequences, "none: each sequence is judged beyond rounding");
  finding.hypotheses = {
      {"columns of S sum to 1 (largest deviation)", deviation, deviation <= kMixingRounding}};
  finding.details.emplace_back("smallest change of the mean entropy, nats", smallest);
  return finding;
}

CheckFinding check_lower_entropy(const CheckEffort& effort) {
  int lower = 0;
  double ratio = 0;
  const int sequences = kMixingFrequencySequences * effort.seeds;
  for (int i = 0; i < sequences; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.mixing.same_weights", i);
    const RoutedSequence sequence = draw_similar(engine, 1);
    const double before = sequence.entropies.mean(),
                 after = routing_entropy(Matrix(sequence.log_scores.array().exp()) * sequence.routing);
    if (after < before) ++lower;
    ratio += after / before / sequences;
  }
  CheckFinding finding = every_instance(lower, sequences, "none: each sequence is judged by itself");
  add_frequency(finding, "share that is lowered", lower, sequences);
  finding.details.emplace_back("mean ratio of entropies, mixed to plain", ratio);
  return finding;
}

CheckFinding check_identity_limit(const CheckEffort& effort, bool equal_lengths) {
  double largest = 0, margin = std::numeric_limits<double>::infinity();
  int kept = 0, tokens = 0;
  for (int i = 0; i < kMixingSequences * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.similarity_identity", i);
    Matrix u = draw_similar(engine, 1).tokens;
    if (equal_lengths) u.rowwise().normalize();
    const Matrix similarity = log_similarity(u, kSmallTemperature).array().exp();
    largest = larger(largest, (similarity - Matrix::Identity(u.rows(), u.rows())).cwiseAbs().maxCoeff());
    const Vector margins = self_margins(u);
    margin = smaller(margin, margins.minCoeff());
    kept += static_cast<int>((margins.array() > 0).count());
    tokens += static_cast<int>(margins.size());
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kMixingRounding;
  finding.error_origin = "rounding: other weights underflow at tau = 1e-10";
  finding.details = {{"tokens", tokens},
                     {"share with u_i.u_i > u_i.u_j", static_cast<double>(kept) / tokens}};
  if (equal_lengths) {
    finding.hypotheses = {{"u_i.u_i > u_i.u_j for all j (smallest difference)", margin, margin > 0}};
  }
  return finding;
}

CheckFinding check_identity_criterion(const CheckEffort& effort) {
  int agree = 0, kept = 0, tokens = 0;
  for (int i = 0; i < kMixingSequences * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.similarity_identity", i);
    const Matrix u = draw_similar(engine, 1).tokens;
    const Vector own = log_similarity(u, kSmallTemperature).diagonal().array().exp();
    const Vector margins = self_margins(u);
    for (Eigen::Index t = 0; t < own.size(); ++t, ++tokens) {
      if ((own[t] > 1 - kMixingRounding) == (margins[t] > 0)) ++agree;
      if (margins[t] > 0) ++kept;
    }
  }
  CheckFinding finding = every_instance(agree, tokens, "none: each token is judged by itself");
  finding.details.emplace_back("share that keeps itself", static_cast<double>(kept) / tokens);
  return finding;
}

std::vector<Check> graph_of_tokens2025_mixing_checks() {
  const std::string source = "Nguyen et al. 2025, ", id = "graph_of_tokens2025.";
  return {
      {id + "mixing.concavity", source + "section 4",
       "H(p_i) >= sum_j S_ij H(r_j), concavity, similar tokens mixed at tau = 0.1, 1, 2, sqrt d (share of "
       "tokens)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_concavity(effort); }},
      {id + "mixing.doubly_stochastic", source + "section 4",
       "a doubly stochastic S never lowers the mean entropy over tokens (share of random sequences)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_doubly_stochastic(effort); }},
      {id + "mixing.lower_entropy", source + "section 4",
       "mixing lowers the mean entropy of a router whose weights stay as they are, S at tau = 1 (share of "
       "random sequences)",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_lower_entropy(effort); }},
      {id + "similarity_identity.as_printed", source + "appendix E.6",
       "S -> I as tau -> 0, W_s = I, for tokens N(0, I) (largest entry of S - I at tau = 1e-10)",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_identity_limit(effort, false); }},
      {id + "similarity_identity.corrected", source + "appendix E.6", "the same for tokens of one length",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_identity_limit(effort, true); }},
      {id + "similarity_identity.criterion", source + "appendix E.6",
       "S_ii -> 1 as tau -> 0 if and only if u_i.u_i > u_i.u_j for all other j (share of tokens that agree)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_identity_criterion(effort); }}};
}

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
    Matrix sum = Matrix::Zero(kEstimateTokens, kEstimateOutputs), squares = sum;
    for (int pair = 0; pair < pairs; ++pair) {
      const Matrix added =
          (pair_mean(problem, kSmallSigma, engine) - still) / (kSmallSigma * kSmallSigma / 2);
      const Matrix difference = problem.centres.weights * (added - curvature);
      sum += difference;
      squares += difference.cwiseAbs2();
    }
    const Matrix mean = sum / pairs;
    const Matrix variance = squares / pairs - mean.cwiseAbs2();
    largest = larger(largest, (mean.array().abs() / (variance.array() / pairs).sqrt()).maxCoeff());
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = 5;
  finding.error_origin = "5 standard errors; terms of order sigma^2 = 1e-4 are far below one";
  finding.details = {{"problems", kEstimateProblems}, {"pairs of draws", pairs}};
  return finding;
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
  finding.error_bound = 64 * std::numeric_limits<double>::epsilon();
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
  return {
      {id + "noise", source,
       "the noise of u_i adds sigma^2/2 times the mean Laplacian of MoE at the centres W_h^T x_j to "
       "E[MoE(u_i) | X] (largest deviation at sigma = 0.01, in standard errors)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_noise_gap(effort); }},
      {id + "exact_without_noise", source,
       "E[MoE(u_i) | X] = MoE(E[u_i | X]) as sigma -> 0: the estimate's only error is the noise (relative "
       "gap)",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_point_estimate(effort); }}};
}

namespace {

constexpr const char* kTopkId = "graph_of_tokens2025.renormalised_topk";
constexpr int kTopkInstances = 2000, kMostExperts = 64;
constexpr double kTopkSpreads[] = {0.1, 1, 10, 100};

/// Places in the order of falling values; of equal ones the first comes first.
std::vector<Eigen::Index> falling_order(const Vector& values) {
  std::vector<Eigen::Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

Vector renormalised_gates(const Vector& scores, int selected) {
  const Vector probabilities = softmax(scores.transpose()).transpose();
  const std::vector<Eigen::Index> order = falling_order(probabilities);
  Vector gates = Vector::Zero(scores.size());
  for (int k = 0; k < selected; ++k) {
    const Eigen::Index place = order[static_cast<std::size_t>(k)];
    gates[place] = probabilities[place];
  }
  return gates / gates.sum();
}

Vector masked_gates(const Vector& scores, int selected) {
  const std::vector<Eigen::Index> order = falling_order(scores);
  Vector masked = Vector::Constant(scores.size(), -std::numeric_limits<double>::infinity());
  for (int k = 0; k < selected; ++k) {
    const Eigen::Index place = order[static_cast<std::size_t>(k)];
    masked[place] = scores[place];
  }
  return softmax(masked.transpose()).transpose();
}

CheckFinding check_topk(const CheckEffort& effort, const GateRule& left, const GateRule& right) {
  double largest = 0, gap = std::numeric_limits<double>::infinity();
  int instances = 0;
  for (const double spread : kTopkSpreads) {
    Engine engine = check_stream(effort, kTopkId, instances);
    for (int i = 0; i < kTopkInstances * effort.seeds; ++i, ++instances) {
      const int experts = 2 + draw_index(engine, kMostExperts - 1);
      const int selected = 1 + draw_index(engine, experts - 1);
      const Vector scores = draw_normals(engine, experts, 1, spread);
      const std::vector<Eigen::Index> order = falling_order(scores);
      const std::size_t last = static_cast<std::size_t>(selected - 1);
      gap = smaller(gap, scores[order[last]] - scores[order[last + 1]]);
      largest = larger(largest, (left(scores, selected) - right(scores, selected)).cwiseAbs().maxCoeff());
    }
  }
  CheckFinding finding;
  finding.hypotheses = {{"no ties: gamma_(K) > gamma_(K+1) (smallest difference)", gap, gap > 0}};
  finding.measured = largest;
  finding.error_bound = 2 * kMostExperts * std::numeric_limits<double>::epsilon();
  finding.error_origin = "rounding of sums of up to 64 terms";
  finding.details = {{"instances", instances}};
  return finding;
}

std::vector<Check> graph_of_tokens2025_topk_checks() {
  return {{kTopkId, "Nguyen et al. 2025, Remark 1, appendix B.3",
           "Renormalize(TopK(softmax gamma)) = softmax(gamma on the K largest, -infinity elsewhere), for "
           "random "
           "scores, E <= 64 and K < E (largest difference)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_topk(effort); }}};
}

}  // namespace moelab
