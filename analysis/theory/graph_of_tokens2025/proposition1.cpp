#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025.h"

namespace moelab {
namespace {

constexpr int kEntropyTokens = 16, kEntropyDim = 8, kEntropyExperts = 16, kEntropyHeads = 4,
              kEntropyQueryDim = 4;
constexpr int kEntropySequences = 200, kEntropyFrequencySequences = 4000;
/// Entropies are sums of 16 products of order one.
constexpr double kEntropyRounding = 128 * std::numeric_limits<double>::epsilon();
/// e^-745 is zero in double.
constexpr double kVanishing = 745;

double entropy_of(const Vector& distribution) {
  return entropy({distribution.data(), static_cast<std::size_t>(distribution.size())});
}

/// H(p_i) of one token, with the weights that make p_i.
struct MixedToken {
  DecidedWeights decided;
  double entropy;
};

MixedToken mix(const RoutedSequence& sequence, Eigen::Index token, bool all_tokens) {
  // With no entropy larger than the token's own, J_i is everything.
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
  double excess = -std::numeric_limits<double>::infinity();
  double log_odds = std::numeric_limits<double>::infinity();
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

}  // namespace

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
    sequence.log_scores = posterior.log_positions[static_cast<std::size_t>(decided_head(heads, x))];
  }
  sequence.routing = mixture.routing(sequence.tokens);
  sequence.entropies = routing_entropies(sequence.routing);
  return sequence;
}

std::vector<double> source_parameters() {
  return {0.1, 1, 2, std::sqrt(static_cast<double>(kEntropyDim))};
}

double proposition1_bound(const Vector& weights, const Vector& entropies) {
  return weights.dot(entropies) + entropy_of(weights);
}

CheckFinding check_entropy_bound(const CheckEffort& effort, MixingKind kind, const EntropyBound& bound) {
  int hits = 0, tokens = 0;
  double slack = std::numeric_limits<double>::infinity();
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
  CheckFinding finding = every_instance(hits, tokens, "none: each token is judged beyond rounding");
  finding.details.emplace_back("smallest slack, nats", slack);
  return finding;
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
                    [kind](const CheckEffort& effort) { return check_entropy_bound(effort, kind); }});
    list.push_back({id + "limit." + name + ".decided_tokens", source,
                    fmt::format("H(p_i) <= H(r_i) as {} -> 0, mixing over J_i = {{j : H(r_j) <= H(r_i)}} "
                                "(largest excess, nats)",
                                symbol_of(kind)),
                    CheckVerdict::holds,
                    [kind](const CheckEffort& effort) { return check_entropy_limit(effort, kind, false); }});
    list.push_back({id + "limit." + name + ".all_tokens", source,
                    "the same mixing over all tokens, as the router does (Definitions 2 and 5)",
                    CheckVerdict::fails,
                    [kind](const CheckEffort& effort) { return check_entropy_limit(effort, kind, true); }});
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

}  // namespace moelab
