#include "analysis/stats/claim_judgement.h"

#include <fmt/core.h>

#include "analysis/stats/significance.h"

namespace moelab {
namespace {

constexpr double kError = 1 - kLevel;

bool lies_within(const Interval& interval, const Interval& range) {
  return interval.low > range.low && interval.high < range.high;
}

Verdict verdict_of(const Interval& interval, const Interval& wide, const DecisionRule& rule) {
  if (wide.high < rule.claimed.low || wide.low > rule.claimed.high) return Verdict::refuted;
  if (lies_within(interval, rule.claimed)) return Verdict::reproduced;
  if (rule.negligible && lies_within(interval, *rule.negligible)) return Verdict::equivalent;
  return Verdict::inconclusive;
}

Verdict sign_verdict(int supporting, int opposing, int tests) {
  const int decidable = supporting + opposing;
  if (sign_p_value(opposing, decidable) <= kError / tests) return Verdict::refuted;
  return sign_p_value(supporting, decidable) <= kError ? Verdict::reproduced : Verdict::inconclusive;
}

/// The seeds at which the present shares of signs would decide.
std::optional<int> seeds_for_signs(int supporting, int opposing, int pairs, int tests) {
  constexpr int kMostScanned = 20'000;
  if (supporting == opposing) return std::nullopt;
  for (int seeds = pairs + 1; seeds <= kMostScanned; ++seeds) {
    const auto share = [&](int count) { return static_cast<int>(std::int64_t{count} * seeds / pairs); };
    if (sign_verdict(share(supporting), share(opposing), tests) != Verdict::inconclusive) return seeds;
  }
  return std::nullopt;
}

}  // namespace

void add_note(ClaimPoint& point, const std::string& sentence) {
  point.note += (point.note.empty() ? "" : "; ") + sentence;
}

void judge_differences(const std::vector<double>& differences, const DecisionRule& rule, ClaimPoint& point) {
  const double wide_level = 1 - kError / rule.tests;
  point.verdict =
      verdict_of(*point.difference->interval, *mean_estimate(differences, wide_level).interval, rule);
  const RangePValues claimed = range_p_values(differences, rule.claimed);
  point.p_values = PointPValues{claimed.inside, claimed.outside};
  if (rule.negligible) point.p_values->equivalent = range_p_values(differences, *rule.negligible).inside;
  if (point.verdict != Verdict::inconclusive) return;
  const double mean = point.difference->mean;
  double variance = 0;
  for (const double difference : differences)
    variance += (difference - mean) * (difference - mean) / (static_cast<double>(differences.size()) - 1);
  point.seeds_to_decide = least_count(static_cast<int>(differences.size()) + 1, [&](int count) {
    return verdict_of(student_interval(mean, variance, count, kLevel),
                      student_interval(mean, variance, count, wide_level), rule) != Verdict::inconclusive;
  });
}

void judge_signs(char op, int tests, ClaimPoint& point) {
  const SignCounts& signs = *point.signs;
  const int decidable = signs.below + signs.above;
  add_note(point, fmt::format("sign test on {} decidable of {} pairs, {} below and {} above", decidable,
                              point.pairs, signs.below, signs.above));
  if (op == '~') {
    add_note(point, "censored values cannot show that sides are equal");
    return;
  }
  const int supporting = op == '<' ? signs.below : signs.above, opposing = decidable - supporting;
  point.p_values = PointPValues{sign_p_value(supporting, decidable), sign_p_value(opposing, decidable)};
  if (decidable < kLeastDecidablePairs)
    add_note(point, fmt::format("a verdict needs {} decidable pairs", kLeastDecidablePairs));
  point.verdict = sign_verdict(supporting, opposing, tests);
  if (point.verdict == Verdict::inconclusive)
    point.seeds_to_decide = seeds_for_signs(supporting, opposing, point.pairs, tests);
}

}  // namespace moelab
