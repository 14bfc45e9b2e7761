#include "analysis/stats/claim_judgement.h"

#include <fmt/core.h>

#include <cmath>

#include "analysis/stats/sequences.h"
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

/// The p value of too many signs of one kind.
double signs_p_value(int count, int decidable, bool is_sequential) {
  if (!is_sequential) return sign_p_value(count, decidable);
  return 2 * count <= decidable ? 1 : sign_sequence_p_value(count, decidable);
}

Verdict sign_verdict(int supporting, int opposing, int tests, bool is_sequential) {
  const int decidable = supporting + opposing;
  if (signs_p_value(opposing, decidable, is_sequential) <= kError / tests) return Verdict::refuted;
  return signs_p_value(supporting, decidable, is_sequential) <= kError ? Verdict::reproduced
                                                                       : Verdict::inconclusive;
}

Interval interval_of(double mean, double variance, int count, double level, bool is_sequential) {
  return is_sequential ? t_mixture_interval(mean, variance, count, level)
                       : student_interval(mean, variance, count, level);
}

/// range_p_values() by the sequence.
RangePValues sequential_p_values(double mean, double variance, int count, const Interval& range) {
  // Small where the mean is said to lie on that side of the edge.
  const auto p_of = [&](bool is_on_side, double edge) {
    return is_on_side ? t_mixture_p_value(mean, variance, count, edge) : 1.0;
  };
  const auto below = [&](double edge) {
    return std::isinf(edge) ? (edge > 0 ? 0.0 : 1.0) : p_of(mean < edge, edge);
  };
  const auto above = [&](double edge) {
    return std::isinf(edge) ? (edge > 0 ? 1.0 : 0.0) : p_of(mean > edge, edge);
  };
  return {std::max(below(range.high), above(range.low)), std::min(above(range.high), below(range.low))};
}

/// The seeds at which the present shares of signs would decide.
std::optional<int> seeds_for_signs(int supporting, int opposing, int pairs, int tests, bool is_sequential) {
  constexpr int kMostScanned = 20'000;
  if (supporting == opposing) return std::nullopt;
  for (int seeds = pairs + 1; seeds <= kMostScanned; ++seeds) {
    const auto share = [&](int count) { return static_cast<int>(std::int64_t{count} * seeds / pairs); };
    if (sign_verdict(share(supporting), share(opposing), tests, is_sequential) != Verdict::inconclusive)
      return seeds;
  }
  return std::nullopt;
}

}  // namespace

void add_note(ClaimPoint& point, const std::string& sentence) {
  point.note += (point.note.empty() ? "" : "; ") + sentence;
}

void judge_differences(const std::vector<double>& differences, const DecisionRule& rule, ClaimPoint& point) {
  const double wide_level = 1 - kError / rule.tests;
  const double mean = point.difference->mean, variance = variance_of(differences, mean);
  const int pairs = static_cast<int>(differences.size());
  const auto p_values_of = [&](const Interval& range) {
    return rule.is_sequential ? sequential_p_values(mean, variance, pairs, range)
                              : range_p_values(differences, range);
  };
  if (rule.is_sequential) {
    point.difference->interval = t_mixture_interval(mean, variance, pairs, kLevel);
    point.median_interval = sign_sequence_interval(differences, kLevel);
  }
  const Interval wide = rule.is_sequential ? t_mixture_interval(mean, variance, pairs, wide_level)
                                           : *mean_estimate(differences, wide_level).interval;
  point.verdict = verdict_of(*point.difference->interval, wide, rule);
  const RangePValues claimed = p_values_of(rule.claimed);
  point.p_values = PointPValues{claimed.inside, claimed.outside};
  if (rule.negligible) point.p_values->equivalent = p_values_of(*rule.negligible).inside;
  if (point.verdict != Verdict::inconclusive) return;
  const auto verdict_with = [&](int count) {
    return verdict_of(interval_of(mean, variance, count, kLevel, rule.is_sequential),
                      interval_of(mean, variance, count, wide_level, rule.is_sequential), rule);
  };
  point.seeds_to_decide =
      least_count(pairs + 1, [&](int count) { return verdict_with(count) != Verdict::inconclusive; });
  if (point.seeds_to_decide) point.verdict_then = verdict_with(*point.seeds_to_decide);
}

void judge_signs(char op, int tests, bool is_sequential, ClaimPoint& point) {
  const SignCounts& signs = *point.signs;
  const int decidable = signs.below + signs.above;
  add_note(point, fmt::format("{} on {} decidable of {} pairs, {} below and {} above",
                              is_sequential ? "sign sequence" : "sign test", decidable, point.pairs,
                              signs.below, signs.above));
  if (op == '~') {
    add_note(point, "censored values cannot show that sides are equal");
    return;
  }
  const int supporting = op == '<' ? signs.below : signs.above, opposing = decidable - supporting;
  point.p_values = PointPValues{signs_p_value(supporting, decidable, is_sequential),
                                signs_p_value(opposing, decidable, is_sequential)};
  if (!is_sequential && decidable < kLeastDecidablePairs)
    add_note(point, fmt::format("a verdict needs {} decidable pairs", kLeastDecidablePairs));
  point.verdict = sign_verdict(supporting, opposing, tests, is_sequential);
  if (point.verdict != Verdict::inconclusive) return;
  point.seeds_to_decide = seeds_for_signs(supporting, opposing, point.pairs, tests, is_sequential);
  if (point.seeds_to_decide)
    point.verdict_then = supporting > opposing ? Verdict::reproduced : Verdict::refuted;
}

}  // namespace moelab
