#include "analysis/theory/check.h"

#include <algorithm>
#include <cmath>

namespace moelab {
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
  return stands_as_predicted(finding) ? CheckVerdict::holds : CheckVerdict::fails;
}

}  // namespace moelab
