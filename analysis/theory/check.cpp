#include "analysis/theory/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "analysis/stats/intervals.h"

/// By paper, then by number. To add checks, define <name>_checks() in the paper's folder and add a line here.
// clang-format off
#define MOELAB_CHECKS(entry)                \
  entry(dikkala2023_local_minima)           \
  entry(dikkala2023_descent_step)           \
  entry(dikkala2023_theorem1)               \
  entry(dikkala2023_router_bias)            \
  entry(dikkala2023_lemma1)                 \
  entry(dikkala2023_theorem2)               \
  entry(dikkala2023_sample_router)          \
  entry(dikkala2023_lemma2)                 \
  entry(dikkala2023_claim)                  \
  entry(dikkala2023_theorem4)               \
  entry(dikkala2023_theorem4_gradient)      \
  entry(acmoe2025_theorem1)                 \
  entry(acmoe2025_lemma3)                   \
  entry(acmoe2025_lemma1)                   \
  entry(acmoe2025_lemma2)                   \
  entry(acmoe2025_proposition1)             \
  entry(acmoe2025_proposition2)             \
  entry(acmoe2025_pooled_moment)            \
  entry(acmoe2025_router_hessian)           \
  entry(acmoe2025_lemma4)                   \
  entry(acmoe2025_remark3)                  \
  entry(acmoe2025_remark4)                  \
  entry(graph_of_tokens2025_topk)           \
  entry(graph_of_tokens2025_model)          \
  entry(graph_of_tokens2025_independence)   \
  entry(graph_of_tokens2025_head)           \
  entry(graph_of_tokens2025_point_estimate) \
  entry(graph_of_tokens2025_likelihood)     \
  entry(graph_of_tokens2025_proposition1)   \
  entry(graph_of_tokens2025_mixing)         \
  entry(specialization2025_cross_gradient)  \
  entry(specialization2025_task_gradient)   \
  entry(specialization2025_slope)           \
  entry(specialization2025_balance)         \
  entry(specialization2025_lemma)           \
  entry(identifiability)                    \
  entry(chen2022_theorem)                   \
  entry(patch_routing2023)                  \
  entry(questions_exact)                    \
  entry(continual2025)                      \
  entry(latent_single_index2025)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) std::vector<Check> name##_checks();
MOELAB_CHECKS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> list;
#define MOELAB_ADD(name) \
  for (Check & check : name##_checks()) list.push_back(std::move(check));
    MOELAB_CHECKS(MOELAB_ADD)
#undef MOELAB_ADD
    return list;
  }();
  return all;
}

namespace {

bool stands_as_predicted(const CheckFinding& finding) {
  const double difference = finding.measured - finding.predicted;
  switch (finding.relation) {
    case Relation::equal:
      return std::abs(difference) <= finding.error_bound;
    case Relation::at_most:
      return difference <= finding.error_bound;
    case Relation::at_least:
      return difference >= -finding.error_bound;
  }
  return false;
}

/// FNV-1a: the same number on every platform, unlike std::hash.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

}  // namespace

const char* to_string(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::holds:
      return "holds";
    case CheckVerdict::fails:
      return "fails";
    case CheckVerdict::hypotheses_not_met:
      return "hypotheses not met";
    case CheckVerdict::inconclusive:
      return "inconclusive";
    case CheckVerdict::regression:
      return "regression";
  }
  return "";
}

Engine check_stream(const CheckEffort& effort, std::string_view id, int repetition) {
  const Seeds seeds{effort.root, static_cast<std::uint64_t>(repetition)};
  return seeds.stream(Purpose::evaluation, hash_of(id));
}

CheckVerdict verdict_of(const CheckFinding& finding) {
  const bool met = std::all_of(finding.hypotheses.begin(), finding.hypotheses.end(),
                               [](const Hypothesis& hypothesis) { return hypothesis.met; });
  if (!met) return CheckVerdict::hypotheses_not_met;
  for (const double number : {finding.predicted, finding.measured, finding.error_bound}) {
    if (!std::isfinite(number)) return CheckVerdict::inconclusive;
  }
  if (finding.error_bound > finding.resolution) return CheckVerdict::inconclusive;
  if (!stands_as_predicted(finding)) return CheckVerdict::fails;
  return finding.is_regression ? CheckVerdict::regression : CheckVerdict::holds;
}

CheckFinding expected_zero(double measured, double error_bound, std::string error_origin,
                           CheckDetails details) {
  return {.measured = measured,
          .error_bound = error_bound,
          .error_origin = std::move(error_origin),
          .details = std::move(details)};
}

CheckFinding in_standard_errors(double largest, CheckDetails details, double bound) {
  return expected_zero(largest, bound, fmt::format("{} standard errors", bound), std::move(details));
}

CheckFinding every_instance(int hits, int instances, std::string error_origin, CheckDetails details) {
  details.insert(details.begin(), {"instances", instances});
  return {.predicted = 1,
          .measured = static_cast<double>(hits) / instances,
          .error_origin = std::move(error_origin),
          .details = std::move(details)};
}

CheckFinding measured_frequency(int hits, int instances, double predicted, double unit,
                                CheckDetails details) {
  CheckFinding finding = every_instance(
      hits, instances,
      fmt::format("{} standard errors, and half of the last digit given, {}", kStandardErrors, unit / 2),
      std::move(details));
  finding.predicted = predicted;
  finding.error_bound = kStandardErrors * std::sqrt(predicted * (1 - predicted) / instances) + unit / 2;
  finding.resolution = 2 * unit;
  finding.is_regression = true;
  return finding;
}

void add_frequency(CheckFinding& finding, const std::string& name, int hits, int instances) {
  const Interval interval = binomial_interval(hits, instances);
  finding.details.emplace_back(name, static_cast<double>(hits) / instances);
  finding.details.emplace_back(name + ", 95 % low", interval.low);
  finding.details.emplace_back(name + ", 95 % high", interval.high);
}

void MeanOfZero::add(const Vector& values) {
  sum_ += values;
  squares_ += values.cwiseAbs2();
  ++count_;
}

double MeanOfZero::largest_deviation() const {
  double largest = 0;
  for (Eigen::Index j = 0; j < sum_.size(); ++j) {
    if (squares_[j] == 0) continue;
    const double mean = sum_[j] / count_, variance = squares_[j] / count_ - mean * mean;
    largest = larger(largest, std::abs(mean) / std::sqrt(variance / count_));
  }
  return largest;
}

}  // namespace moelab
