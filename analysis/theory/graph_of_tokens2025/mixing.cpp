#include "analysis/theory/graph_of_tokens2025/mixing.h"

#include <cmath>
#include <limits>

#include "analysis/metrics/entropy.h"
#include "analysis/theory/extremes.h"
#include "analysis/theory/frequencies.h"
#include "analysis/theory/graph_of_tokens2025/proposition1.h"
#include "sim/base/softmax.h"

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

}  // namespace moelab
