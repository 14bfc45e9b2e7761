#include <fmt/core.h>

#include <cmath>

#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "analysis/theory/graph_of_tokens2025.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr int kEntropyTokens = 16, kEntropyDim = 8, kEntropyExperts = 16, kEntropyHeads = 4,
              kEntropyQueryDim = 4;
constexpr int kEntropySequences = 200, kEntropyFrequencySequences = 4000;
/// The rounding of entropies, sums of 16 products of order one.
constexpr double kEntropyRounding = 128 * kEpsilon;
/// e^-745 is zero in double.
constexpr double kVanishing = 745;

/// A random sequence: s = 16 tokens N(0, I) of d = 8, E = 16 experts, r = softmax(W u), W ~ N(0, 1). With
/// attention there are 4 heads.
struct RoutedSequence {
  Matrix routing;     ///< r (s, E)
  Vector entropies;   ///< H(r_j) (s)
  Matrix log_scores;  ///< log S or log A^p (s, s)
  Matrix tokens;      ///< U (s, d)
};

RoutedSequence draw_sequence(Engine& engine, MixingKind kind, double parameter) {
  const TokenMixture mixture = draw_mixture(engine, kEntropyExperts, kEntropyDim, 1);
  RoutedSequence sequence;
  sequence.tokens = draw_normals(engine, kEntropyTokens, kEntropyDim);
  if (kind == MixingKind::similarity) {
    sequence.log_scores = log_similarity(sequence.tokens, parameter);
  } else {
    const Matrix x = sequence.tokens;
    const AttentionHeads heads = draw_heads(engine, kEntropyHeads, kEntropyDim, kEntropyQueryDim);
    sequence.tokens = heads.output(x);
    const HeadPosterior posterior = head_posterior(heads, x, sequence.tokens, parameter);
    sequence.log_scores = posterior.log_positions[size(decided_head(heads, x))];
  }
  sequence.routing = mixture.routing(sequence.tokens);
  sequence.entropies = routing_entropies(sequence.routing);
  return sequence;
}

/// τ or σ as the paper uses them.
std::vector<double> source_parameters() {
  return {0.1, 1, 2, std::sqrt(static_cast<double>(kEntropyDim))};
}

double entropy_of(const Vector& distribution) {
  return entropy({distribution.data(), size(distribution.size())});
}

/// H(p_i) of one token, with the weights of p_i.
struct MixedToken {
  DecidedWeights decided;
  double entropy;
};

MixedToken mix(const RoutedSequence& sequence, Eigen::Index token, bool all_tokens) {
  // With equal entropies J_i holds all tokens.
  const Vector entropies = all_tokens ? Vector(Vector::Zero(sequence.entropies.size())) : sequence.entropies;
  DecidedWeights decided = decided_weights(sequence.log_scores.row(token).transpose(), entropies, token);
  const Vector mixed = sequence.routing.transpose() * decided.weights;
  return {std::move(decided), entropy_of(mixed)};
}

double smallest_parameter(MixingKind kind) {
  return kind == MixingKind::similarity ? 1e-10 : 1e-6;
}

const char* symbol_of(MixingKind kind) {
  return kind == MixingKind::similarity ? "tau" : "sigma";
}

/// The largest H(p_i) − H(r_i) over tokens and sequences, and the smallest log-odds of the best weight.
struct LargestExcess {
  double excess = -kInfinity;
  double log_odds = kInfinity;
};

LargestExcess largest_excess(const CheckEffort& effort, MixingKind kind, double parameter, bool all_tokens) {
  LargestExcess largest;
  for (int i = 0; i < kEntropySequences * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.proposition1.limit", i);
    const RoutedSequence sequence = draw_sequence(engine, kind, parameter);
    for (Eigen::Index token = 0; token < kEntropyTokens; ++token) {
      const MixedToken mixed = mix(sequence, token, all_tokens);
      largest.excess = larger(largest.excess, mixed.entropy - sequence.entropies[token]);
      largest.log_odds = smaller(largest.log_odds, mixed.decided.log_odds);
    }
  }
  return largest;
}

std::string parameter_text(double parameter) {
  return parameter == source_parameters().back() ? "sqrt d" : fmt::format("{}", parameter);
}

constexpr int kMixingSequences = 1000, kMixingFrequencySequences = 20000;
constexpr double kSmallTemperature = 1e-10;
/// The rounding of means of 16 sums of 16 products of order one.
constexpr double kMixingRounding = 128 * kEpsilon;

RoutedSequence draw_similar(Engine& engine, double temperature) {
  return draw_sequence(engine, MixingKind::similarity, temperature);
}

/// u_i^T u_i − max_{j ≠ i} u_i^T u_j for each token, (s).
Vector self_margins(const Matrix& tokens) {
  Matrix products = tokens * tokens.transpose();
  const Vector own = products.diagonal();
  products.diagonal().setConstant(-kInfinity);
  return own - products.rowwise().maxCoeff();
}

}  // namespace

double proposition1_bound(const Vector& weights, const Vector& entropies) {
  return weights.dot(entropies) + entropy_of(weights);
}

CheckFinding check_entropy_bound(const CheckEffort& effort, MixingKind kind, const EntropyBound& bound) {
  int hits = 0, tokens = 0;
  double slack = kInfinity;
  for (const double parameter : source_parameters()) {
    for (int i = 0; i < kEntropySequences * effort.seeds; ++i) {
      Engine engine = check_stream(effort, "graph_of_tokens2025.proposition1.bound", i);
      const RoutedSequence sequence = draw_sequence(engine, kind, parameter);
      for (Eigen::Index token = 0; token < kEntropyTokens; ++token, ++tokens) {
        const MixedToken mixed = mix(sequence, token, false);
        const double left = bound(mixed.decided.weights, sequence.entropies) - mixed.entropy;
        slack = smaller(slack, left);
        if (left >= -kEntropyRounding) ++hits;
      }
    }
  }
  return every_instance(hits, tokens, "none: each token is judged beyond rounding",
                        {{"smallest slack, nats", slack}});
}

CheckFinding check_entropy_limit(const CheckEffort& effort, MixingKind kind, bool all_tokens) {
  const LargestExcess limit = largest_excess(effort, kind, smallest_parameter(kind), all_tokens);
  CheckFinding finding;
  finding.hypotheses = {
      {"one weight has all the mass (smallest log-odds > 745)", limit.log_odds, limit.log_odds > kVanishing}};
  finding.relation = Relation::at_most;
  finding.measured = limit.excess;
  finding.error_bound = kEntropyRounding;
  finding.error_origin = "rounding";
  finding.details = {{"tokens", kEntropySequences * effort.seeds * kEntropyTokens}};
  for (const double parameter : {0.001, 0.01, 0.1, 1.0}) {
    finding.details.emplace_back(fmt::format("at {} = {}", symbol_of(kind), parameter),
                                 largest_excess(effort, kind, parameter, all_tokens).excess);
  }
  return finding;
}

CheckFinding check_entropy_at(const CheckEffort& effort, MixingKind kind, double parameter) {
  const int sequences = kEntropyFrequencySequences * effort.seeds;
  int failures = 0;
  double excess = 0, largest = 0, ratio = 0;
  for (int i = 0; i < sequences; ++i) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.proposition1.finite", i);
    const RoutedSequence sequence = draw_sequence(engine, kind, parameter);
    const double own = sequence.entropies[0], mixed = mix(sequence, 0, false).entropy;
    ratio += mixed / own / sequences;
    if (mixed <= own + kEntropyRounding) continue;
    ++failures;
    excess += mixed - own;
    largest = larger(largest, mixed - own);
  }
  CheckFinding finding =
      every_instance(sequences - failures, sequences, "none: one token a sequence, judged beyond rounding");
  add_frequency(finding, "share that fails", failures, sequences);
  if (failures > 0) finding.details.emplace_back("mean excess of those, nats", excess / failures);
  finding.details.insert(finding.details.end(),
                         {{"largest excess, nats", largest}, {"mean of H(p_i) / H(r_i)", ratio}});
  return finding;
}

std::vector<Check> graph_of_tokens2025_proposition1_checks() {
  const std::string source = "Nguyen et al. 2025, Proposition 1", id = "graph_of_tokens2025.proposition1.";
  std::vector<Check> list;
  for (const MixingKind kind : {MixingKind::similarity, MixingKind::attention}) {
    const std::string name = kind == MixingKind::similarity ? "similarity" : "attention";
    list.push_back({id + "bound." + name, source,
                    fmt::format("H(p_i) <= sum_j s(i, j) H(r_j) + H(s_i), {} weights over J_i at {} = 0.1, "
                                "1, 2, sqrt d (share of tokens)",
                                name, symbol_of(kind)),
                    CheckVerdict::holds,
                    [kind](Effort effort) { return check_entropy_bound(effort, kind); }});
    list.push_back(
        {id + "limit." + name + ".decided_tokens", source,
         fmt::format(
             "H(p_i) <= H(r_i) as {} -> 0, mixing over J_i = {{j : H(r_j) <= H(r_i)}} (largest excess, nats)",
             symbol_of(kind)),
         CheckVerdict::holds, [kind](Effort effort) { return check_entropy_limit(effort, kind, false); }});
    list.push_back({id + "limit." + name + ".all_tokens", source,
                    fmt::format("H(p_i) <= H(r_i) as {} -> 0, mixing over all tokens, as the router does "
                                "(Definitions 2 and 5) (largest excess, nats)",
                                symbol_of(kind)),
                    CheckVerdict::fails,
                    [kind](Effort effort) { return check_entropy_limit(effort, kind, true); }});
    constexpr const char* kNames[] = {"01", "1", "2", "root_d"};
    const std::vector<double> parameters = source_parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      list.push_back({fmt::format("{}finite.{}_{}", id, symbol_of(kind), kNames[p]), source,
                      fmt::format("H(p_i) <= H(r_i) at {} = {}, mixing over J_i (share of tokens)",
                                  symbol_of(kind), parameter_text(parameters[p])),
                      CheckVerdict::fails, [kind, value = parameters[p]](const CheckEffort& effort) {
                        return check_entropy_at(effort, kind, value);
                      }});
    }
  }
  return list;
}

CheckFinding check_concavity(const CheckEffort& effort) {
  int hits = 0, tokens = 0;
  double smallest = kInfinity;
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
  return every_instance(hits, tokens, "none: each token is judged beyond rounding",
                        {{"smallest gain, nats", smallest}});
}

Matrix mean_of_permutations(Engine& engine, const Matrix& log_scores) {
  constexpr int kPermutations = 5;
  const int tokens = static_cast<int>(log_scores.rows());
  const Matrix weights = softmax(draw_normals(engine, 1, kPermutations));
  Matrix mixing = Matrix::Zero(tokens, tokens);
  for (int k = 0; k < kPermutations; ++k) {
    const std::vector<int> order = draw_permutation(engine, tokens);
    for (int i = 0; i < tokens; ++i) mixing(i, order[size(i)]) += weights(0, k);
  }
  return mixing;
}

Matrix softmax_mixing(Engine&, const Matrix& log_scores) {
  return log_scores.array().exp();
}

CheckFinding check_doubly_stochastic(const CheckEffort& effort, const MixingRule& rule) {
  int hits = 0;
  double smallest = kInfinity, deviation = 0;
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
  double largest = 0, margin = kInfinity;
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
  return every_instance(agree, tokens, "none: each token is judged by itself",
                        {{"share that keeps itself", static_cast<double>(kept) / tokens}});
}

std::vector<Check> graph_of_tokens2025_mixing_checks() {
  const std::string source = "Nguyen et al. 2025, ", id = "graph_of_tokens2025.";
  return {
      {id + "mixing.concavity", source + "section 4",
       "H(p_i) >= sum_j S_ij H(r_j), concavity, similar tokens mixed at tau = 0.1, 1, 2, sqrt d (share of "
       "tokens)",
       CheckVerdict::holds, [](Effort effort) { return check_concavity(effort); }},
      {id + "mixing.doubly_stochastic", source + "section 4",
       "a doubly stochastic S never lowers the mean entropy over tokens (share of random sequences)",
       CheckVerdict::holds, [](Effort effort) { return check_doubly_stochastic(effort); }},
      {id + "mixing.lower_entropy", source + "section 4",
       "mixing lowers the mean entropy of a router whose weights stay as they are, S at tau = 1 (share of "
       "random sequences)",
       CheckVerdict::fails, [](Effort effort) { return check_lower_entropy(effort); }},
      {id + "similarity_identity.as_printed", source + "appendix E.6",
       "S -> I as tau -> 0, W_s = I, for tokens N(0, I) (largest entry of S - I at tau = 1e-10)",
       CheckVerdict::fails, [](Effort effort) { return check_identity_limit(effort, false); }},
      {id + "similarity_identity.corrected", source + "appendix E.6",
       "S -> I as tau -> 0, W_s = I, for tokens of one length (largest entry of S - I at tau = 1e-10)",
       CheckVerdict::holds, [](Effort effort) { return check_identity_limit(effort, true); }},
      {id + "similarity_identity.criterion", source + "appendix E.6",
       "S_ii -> 1 as tau -> 0 if and only if u_i.u_i > u_i.u_j for all other j (share of tokens that agree)",
       CheckVerdict::holds, [](Effort effort) { return check_identity_criterion(effort); }}};
}

}  // namespace moelab
