#include "analysis/stats/claims.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analysis/stats/claim_points.h"
#include "analysis/stats/expression.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string step_text(const std::optional<ClaimStep>& step) {
  if (!step) return "";
  switch (step->at) {
    case ClaimStep::At::end:
      return " at the end";
    case ClaimStep::At::start:
      return " at the start";
    case ClaimStep::At::recorded:
      break;
  }
  return fmt::format(" at step {}", step->step);
}

}  // namespace

std::string to_string(TrendShape shape) {
  return shape == TrendShape::ends ? "ends" : "monotone";
}

std::string to_string(Origin origin) {
  return origin == Origin::ours ? "ours" : "paper";
}

std::string to_string(Reading reading) {
  if (reading == Reading::excluded) return "excluded";
  return reading == Reading::main ? "main" : "other";
}

std::string to_string(Matched matched) {
  switch (matched) {
    case Matched::loss:
      return "loss";
    case Matched::flops:
      return "flops";
    case Matched::steps:
      break;
  }
  return "steps";
}

std::string matched_metric(Matched matched) {
  switch (matched) {
    case Matched::loss:
      return "train_loss";
    case Matched::flops:
      return "train_flops";
    case Matched::steps:
      break;
  }
  return "";
}

std::string ClaimSide::text() const {
  std::string text = factor == 1 ? "" : fmt::format("{:g} × ", factor);
  const std::string& what = is_constant() ? value : metric;
  const std::string whole = what.find(' ') == std::string::npos ? what : "(" + what + ")";
  if (is_constant()) return text + whole;
  text += fmt::format("{} {}", arm, whole);
  if (!relative_to.empty()) text += fmt::format(" relative to {}", relative_to);
  if (!distance_from.empty()) text += fmt::format(" (RMSE from {} over training)", distance_from);
  const std::string place = point_text(where);
  if (!place.empty()) text += fmt::format(" at {}", place);
  return text + step_text(step);
}

namespace {

constexpr double kError = 1 - kLevel;

bool lies_within(const Interval& interval, const Interval& range) {
  return interval.low > range.low && interval.high < range.high;
}

bool is_outside(const Interval& interval, const Interval& range) {
  return interval.high < range.low || interval.low > range.high;
}

Verdict verdict_of(const Interval& interval, const Interval& wide, const DecisionRule& rule) {
  if (rule.negligible && lies_within(interval, *rule.negligible)) return Verdict::equivalent;
  if (is_outside(wide, rule.claimed)) return Verdict::refuted;
  return lies_within(interval, rule.claimed) ? Verdict::reproduced : Verdict::inconclusive;
}

/// The p value of the sign test for `count` signs of one kind.
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

/// range_p_values() from the confidence sequence.
RangePValues sequential_p_values(double mean, double variance, int count, const Interval& range) {
  // The p value is small if the sequence places the mean on that side of the edge.
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

/// The number of seeds that would decide at the present sign shares.
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
  point.claimed = rule.claimed;
  point.negligible = rule.negligible;
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
  const Interval usual = *point.difference->interval;
  point.verdict = verdict_of(usual, wide, rule);
  const bool only_wide_decides = point.verdict == Verdict::inconclusive && is_outside(usual, rule.claimed);
  if (point.verdict == Verdict::refuted || only_wide_decides) {
    point.difference->interval = wide;
    point.level = wide_level;
  }
  const RangePValues claimed = p_values_of(rule.claimed);
  point.p_values = PointPValues{claimed.inside, claimed.outside};
  if (rule.negligible) point.p_values->equivalent = p_values_of(*rule.negligible).inside;
  if (point.verdict != Verdict::inconclusive || rule.is_rounding) return;
  const auto verdict_with = [&](int count) {
    return verdict_of(interval_of(mean, variance, count, kLevel, rule.is_sequential),
                      interval_of(mean, variance, count, wide_level, rule.is_sequential), rule);
  };
  point.seeds_to_decide =
      least_count(pairs + 1, [&](int count) { return verdict_with(count) != Verdict::inconclusive; });
  if (point.seeds_to_decide) point.verdict_then = verdict_with(*point.seeds_to_decide);
}

namespace {

/// Whether a step of a monotone trend does not oppose the trend. Such a step decides nothing.
bool is_no_obstacle(const ClaimPoint& point) {
  return point.is_step && point.verdict != Verdict::refuted &&
         (point.p_values || point.verdict == Verdict::uninformative);
}

}  // namespace

void combine_points(ClaimResult& result) {
  std::vector<Verdict> verdicts, then;  // the present verdicts, and the verdicts with the deciding seeds
  int most_seeds = 0;
  std::optional<int> least_refuting;  // one refuted point decides the claim
  for (const ClaimPoint& point : result.points) {
    if (is_no_obstacle(point) || point.verdict == Verdict::outside) continue;
    verdicts.push_back(point.verdict);
    then.push_back(point.seeds_to_decide ? point.verdict_then : point.verdict);
    const int seeds = point.seeds_to_decide.value_or(0);
    most_seeds = std::max(most_seeds, seeds);
    if (seeds > 0 && point.verdict_then == Verdict::refuted)
      least_refuting = std::min(seeds, least_refuting.value_or(seeds));
  }
  result.verdict = combined_verdict(verdicts);
  if (result.verdict != Verdict::inconclusive) return;
  if (least_refuting)
    result.seeds_to_decide = least_refuting;
  else if (most_seeds > 0 && combined_verdict(then) != Verdict::inconclusive)
    result.seeds_to_decide = most_seeds;
}

std::optional<double> claim_p_value(const ClaimResult& result) {
  double supporting = 0, equivalent = 0, least = 1;
  bool are_all_judged = true, has_ends = false;
  int tests = 0;
  for (const ClaimPoint& point : result.points) {
    if (point.verdict == Verdict::uninformative || point.verdict == Verdict::outside) continue;
    ++tests;
    are_all_judged &= point.p_values.has_value();
    const PointPValues p = point.p_values.value_or(PointPValues{});
    least = std::min(least, p.opposing);
    if (point.is_step) continue;
    has_ends = true;
    supporting = std::max(supporting, p.supporting);
    equivalent = std::max(equivalent, p.equivalent.value_or(1));
  }
  const double opposing = std::min(1.0, tests * least);
  if (result.verdict == Verdict::refuted) return opposing;
  if (!are_all_judged || !has_ends) return std::nullopt;
  if (result.verdict == Verdict::reproduced) return supporting;
  return result.verdict == Verdict::equivalent ? equivalent : std::min(supporting, opposing);
}

Verdict combined_verdict(const std::vector<Verdict>& parts) {
  std::vector<Verdict> deciding = parts;
  std::erase(deciding, Verdict::uninformative);
  if (std::find(deciding.begin(), deciding.end(), Verdict::refuted) != deciding.end())
    return Verdict::refuted;
  const bool are_equal =
      !deciding.empty() &&
      std::all_of(deciding.begin(), deciding.end(), [&](Verdict part) { return part == deciding.front(); });
  return are_equal ? deciding.front() : Verdict::inconclusive;
}

namespace {

struct MetricFacts {
  const std::function<bool(const std::string&)>&is_positive, &larger_is_better;
};

/// A claim with the properties that its points share.
struct JudgedClaim {
  explicit JudgedClaim(const PointedClaim& pointed_claim) : pointed(pointed_claim) {}

  const PointedClaim& pointed;
  bool declared = false;                               ///< every metric is positive by definition
  bool logarithmic = false;                            ///< the claim uses log differences
  bool left_positive = false, right_positive = false;  ///< the side is positive by definition
  std::optional<double> smallest_effect;
  bool is_sequential = false;
  bool larger_is_better = false;  ///< of the compared metric
};

std::vector<double> scaled_ends(const std::vector<Interval>& observations, double factor, bool logarithmic) {
  std::vector<double> values;
  for (const Interval& observation : observations) {
    const double value = observation.low * factor;
    values.push_back(logarithmic ? std::log(value) : value);
  }
  return values;
}

/// The open range of δ in which the claim holds. `right` has the values of the right side.
Interval claimed_range(const PointedClaim& claim, const std::vector<Interval>& right,
                       const ClaimPoint& point) {
  const Interval& range = claim.range;
  if (is_decided_by_signs(range)) return range;
  if (point.logarithmic) return {std::log1p(std::max(range.low, -1.0)), std::log1p(range.high)};
  const double scale = std::abs(mean_estimate(scaled_ends(right, claim.right.factor, false)).mean);
  const auto scaled = [&](double end) { return std::isinf(end) ? end : end * scale; };
  return {scaled(range.low), scaled(range.high)};
}

/// The smallest effect in the units of δ. Unset if the effect is a ratio but δ is a raw difference.
std::optional<Interval> negligible_range(const JudgedClaim& claim) {
  if (!claim.smallest_effect || claim.declared != claim.logarithmic) return std::nullopt;
  const double most = claim.logarithmic ? std::log1p(*claim.smallest_effect) : *claim.smallest_effect;
  return Interval{-most, most};
}

/// The estimate of a side, geometric for a positive side. A sequential run has the interval of its sequence,
/// or none if that is unbounded.
MeanEstimate side_estimate(const ClaimSide& side, const std::vector<Interval>& observations, bool is_positive,
                           bool is_sequential) {
  const std::vector<double> values = scaled_ends(observations, 1, false);
  MeanEstimate estimate = seed_estimate(values, is_positive, is_sequential);
  if (side.is_constant()) estimate.mean = values.front();
  if (side.is_constant() || (estimate.interval && !std::isfinite(estimate.interval->low)))
    estimate.interval.reset();
  return estimate;
}

SignCounts sign_counts(const PointedClaim& claim, const ClaimPairs& pairs) {
  SignCounts signs;
  const auto scaled = [](double factor, const Interval& value) {
    return Interval{factor * value.low, factor * value.high};
  };
  for (std::size_t i = 0; i < pairs.left.size(); ++i)
    signs.add(scaled(claim.left.factor, pairs.left[i]), scaled(claim.right.factor, pairs.right[i]));
  return signs;
}

bool is_uninformative(const PointedClaim& claim, const ClaimPoint& point) {
  return is_relative_to_trivial(claim.left) && is_relative_to_trivial(claim.right) && point.left->mean >= 1 &&
         point.right->mean >= 1;
}

/// Whether the sequences of both means lie at or above 1. In a sequential run, both means alone can exceed 1
/// by chance at some look.
bool is_surely_uninformative(const ClaimPoint& point) {
  const auto is_sure = [](const MeanEstimate& side) { return side.interval && side.interval->low >= 1; };
  return is_sure(*point.left) && is_sure(*point.right);
}

/// Differences of this share of the values are rounding errors.
constexpr double kRoundingShare = 1e-6;

bool are_rounding(const std::vector<double>& differences, const ClaimPairs& pairs, bool logarithmic) {
  double largest = 0, scale = logarithmic ? 1 : 0;
  for (const double difference : differences) largest = std::max(largest, std::abs(difference));
  if (!logarithmic)
    for (const Interval& value : pairs.left) scale = std::max(scale, std::abs(value.low));
  return largest <= kRoundingShare * scale;
}

/// The pairs in which a diverged side speaks for the claim, or against it.
struct Losses {
  int supporting = 0, opposing = 0;
};

Losses losses_of(const JudgedClaim& claim, const ClaimPoint& point) {
  const Interval& range = claim.pointed.range;
  if (has_lower_end(range) && has_upper_end(range)) return {0, point.lost_left + point.lost_right};
  const bool left_loses_for = has_upper_end(range) == claim.larger_is_better;
  return left_loses_for ? Losses{point.lost_left, point.lost_right}
                        : Losses{point.lost_right, point.lost_left};
}

/// Keeps a verdict that losses of diverged cells oppose from being decided.
void apply_losses(const Losses& losses, ClaimPoint& point) {
  if (losses.supporting + losses.opposing == 0) return;
  add_note(point,
           fmt::format("{} of {} pairs lost by a diverged cell: {} for the claim, {} against it",
                       losses.supporting + losses.opposing, point.pairs + losses.supporting + losses.opposing,
                       losses.supporting, losses.opposing));
  const bool holds = point.verdict == Verdict::reproduced || point.verdict == Verdict::equivalent;
  if ((holds && losses.opposing > 0) || (point.verdict == Verdict::refuted && losses.supporting > 0)) {
    point.verdict = Verdict::inconclusive;
    point.p_values.reset();  // they are of the other pairs alone
  }
}

/// Sets verdict, p values and seeds_to_decide from point.signs if signs decide the claimed range of l / r
/// − 1. Other points stay inconclusive. `pairs` counts those that a diverged cell lost, too. Adds to the
/// note.
void judge_signs(const Interval& range, int pairs, int tests, bool is_sequential, ClaimPoint& point) {
  const SignCounts& signs = *point.signs;
  const int decidable = signs.below + signs.above;
  add_note(point, fmt::format("{} on {} decidable of {} pairs, {} below and {} above",
                              is_sequential ? "sign sequence" : "sign test", decidable, pairs, signs.below,
                              signs.above));
  if (!is_decided_by_signs(range)) {
    add_note(point, has_lower_end(range) && has_upper_end(range)
                        ? "censored values cannot show that sides are equal"
                        : "censored values cannot show by how much sides differ");
    return;
  }
  const int supporting = has_upper_end(range) ? signs.below : signs.above, opposing = decidable - supporting;
  point.p_values = PointPValues{signs_p_value(supporting, decidable, is_sequential),
                                signs_p_value(opposing, decidable, is_sequential)};
  if (!is_sequential && decidable < kLeastDecidablePairs)
    add_note(point, fmt::format("a verdict needs {} decidable pairs", kLeastDecidablePairs));
  point.verdict = sign_verdict(supporting, opposing, tests, is_sequential);
  if (point.verdict != Verdict::inconclusive) return;
  point.seeds_to_decide = seeds_for_signs(supporting, opposing, pairs, tests, is_sequential);
  if (point.seeds_to_decide)
    point.verdict_then = supporting > opposing ? Verdict::reproduced : Verdict::refuted;
}

/// Judges a point of too few pairs by the signs of its pairs and losses.
void judge_losses(const JudgedClaim& claim, const Losses& losses, int tests, ClaimPoint& point) {
  const bool supporting_is_below = !has_lower_end(claim.pointed.range);
  point.signs->below += supporting_is_below ? losses.supporting : losses.opposing;
  point.signs->above += supporting_is_below ? losses.opposing : losses.supporting;
  const int pairs = point.pairs + losses.supporting + losses.opposing;
  judge_signs(claim.pointed.range, pairs, tests, claim.is_sequential, point);
}

void judge_point(const JudgedClaim& claim, const ClaimPairs& pairs, int tests, ClaimPoint& point) {
  const PointedClaim& pointed = claim.pointed;
  const int least = claim.is_sequential ? kLeastSequentialPairs : kMinimumPairs;
  const Losses losses = losses_of(claim, point);
  const bool has_losses = losses.supporting + losses.opposing > 0;
  const bool is_judged = point.pairs >= least && pairs.problem.empty();
  if (point.pairs < least)
    add_note(point, fmt::format("{} of the {} pairs that a verdict needs", point.pairs, least));
  if (!pairs.exact() || (has_losses && point.pairs < least && pairs.problem.empty())) {
    point.signs = sign_counts(pointed, pairs);
    if (!pairs.left.empty()) {
      point.left_median = median_of(pairs.left);
      point.right_median = median_of(pairs.right);
    }
    if (is_judged || (has_losses && pairs.problem.empty())) judge_losses(claim, losses, tests, point);
    return;
  }
  if (pairs.left.empty()) return;
  const std::vector<double> differences =
      paired_differences(scaled_ends(pairs.left, pointed.left.factor, claim.logarithmic),
                         scaled_ends(pairs.right, pointed.right.factor, claim.logarithmic));
  point.left = side_estimate(pointed.left, pairs.left, claim.left_positive, claim.is_sequential);
  point.right = side_estimate(pointed.right, pairs.right, claim.right_positive, claim.is_sequential);
  point.difference = seed_estimate(differences, false, claim.is_sequential);
  // With so few pairs, the interval of a sequence decides nothing and is not shown.
  if (claim.is_sequential && point.pairs < least) point.difference->interval.reset();
  if (!is_judged) return;
  const bool are_arms = !pointed.left.is_constant() && !pointed.right.is_constant();
  const bool are_equal =
      std::all_of(differences.begin(), differences.end(), [](double difference) { return difference == 0; });
  const bool claims_equality = pointed.range.low < 0 && pointed.range.high > 0;
  if (is_uninformative(pointed, point) && claim.is_sequential && !is_surely_uninformative(point)) {
    add_note(point, "both sides are near trivial (nmse 1): more pairs tell whether they are better");
  } else if (is_uninformative(pointed, point)) {
    point.verdict = Verdict::uninformative;
    add_note(point, "both sides are no better than trivial (nmse ≥ 1)");
  } else if (pairs.are_untaught) {
    point.verdict = Verdict::uninformative;
    add_note(point, "no gradient of the task reaches the routers of both sides");
  } else if (!claims_equality && are_arms && are_equal && !has_losses && !negligible_range(claim)) {
    point.verdict = Verdict::uninformative;
    add_note(point, "both sides are equal in every pair");
  } else {
    if (are_arms && are_equal && !claims_equality) add_note(point, "both sides are equal in every pair");
    const bool is_rounding = are_arms && are_rounding(differences, pairs, claim.logarithmic);
    if (is_rounding && !are_equal) add_note(point, "the sides differ by rounding alone");
    judge_differences(differences,
                      {claimed_range(pointed, pairs.right, point), negligible_range(claim), tests,
                       claim.is_sequential, is_rounding},
                      point);
    apply_losses(losses, point);
  }
}

/// Whether even both sides cannot differ by the smallest effect. A margin that was meant as a share, on a
/// metric that is compared by differences, is found out so.
bool is_margin_too_wide(const JudgedClaim& claim, const ClaimPoint& point) {
  const std::optional<Interval> range = negligible_range(claim);
  return range && !claim.logarithmic && point.left && point.right &&
         range->high >= std::abs(point.left->mean) + std::abs(point.right->mean);
}

ClaimPoint evaluate_point(const JudgedClaim& claim, const PointPair& at, const ClaimPairs& pairs, int tests) {
  ClaimPoint point;
  point.left_at = at.left;
  point.right_at = at.right;
  point.is_step = at.is_step;
  point.is_sequential = claim.is_sequential;
  if (at.is_step) {
    point.left_step = at.left_step;
    point.right_step = at.right_step;
  }
  point.logarithmic = claim.logarithmic;
  point.pairs = static_cast<int>(pairs.left.size());
  point.lost_left = pairs.lost_left;
  point.lost_right = pairs.lost_right;
  point.is_complete = pairs.problem.empty();
  point.note = pairs.problem;
  point.left_factor = claim.pointed.left.factor;
  point.right_factor = claim.pointed.right.factor;
  if (point.seen_pairs() > 0)
    judge_point(claim, pairs, tests, point);
  else if (point.note.empty())
    point.note = "no cells";
  if (claim.declared && !claim.logarithmic && !point.signs)
    add_note(point, "raw differences: a value is not above 0");
  if (is_margin_too_wide(claim, point))
    add_note(point,
             "the smallest effect is as large as both sides together: it is a difference here, not a share");
  if (at.is_outside) {
    point.verdict = Verdict::outside;
    point.p_values.reset();
    point.seeds_to_decide.reset();
    add_note(point, "outside the claim's regime");
  }
  return point;
}

bool all_positive(const PointedClaim& claim, const std::vector<ClaimPairs>& points) {
  const auto positive = [](const Interval& value) { return value.low > 0 || !is_exact(value); };
  return claim.left.factor > 0 && claim.right.factor > 0 &&
         std::all_of(points.begin(), points.end(), [&](const ClaimPairs& pairs) {
           return std::all_of(pairs.left.begin(), pairs.left.end(), positive) &&
                  std::all_of(pairs.right.begin(), pairs.right.end(), positive);
         });
}

/// Whether larger is better for the metric of a side. False for expressions and numbers.
bool is_larger_better(const ClaimSide& side,
                      const std::function<bool(const std::string&)>& larger_is_better) {
  return larger_is_better && !side.is_constant() && larger_is_better(side.metric);
}

/// Judges the claim at its points.
std::vector<ClaimPoint> evaluate_points(const PointedClaim& pointed, const Claim& claim, const RowIndex& rows,
                                        const MetricFacts& metrics, bool is_sequential) {
  std::vector<ClaimPairs> pairs;
  for (const PointPair& at : pointed.points)
    pairs.push_back(collect_pairs(pointed, at, rows, is_sequential, claim.diverged));
  JudgedClaim judged(pointed);
  judged.smallest_effect = claim.smallest_effect;
  judged.is_sequential = is_sequential;
  judged.left_positive = is_positive_side(pointed.left, rows, metrics.is_positive);
  judged.right_positive = is_positive_side(pointed.right, rows, metrics.is_positive);
  judged.declared = judged.left_positive && judged.right_positive;
  judged.logarithmic = judged.declared && all_positive(pointed, pairs);
  judged.larger_is_better = is_larger_better(pointed.left, metrics.larger_is_better) ||
                            is_larger_better(pointed.right, metrics.larger_is_better);
  const auto tests = static_cast<int>(std::count_if(pointed.points.begin(), pointed.points.end(),
                                                    [](const PointPair& at) { return !at.is_outside; }));
  std::vector<ClaimPoint> points;
  for (std::size_t i = 0; i < pointed.points.size(); ++i)
    points.push_back(evaluate_point(judged, pointed.points[i], pairs[i], std::max(1, tests)));
  return points;
}

/// The regime as written in the scenario.
std::string regime_text(const std::optional<ClaimRegime>& regime) {
  if (!regime || !regime->is_given()) return "";
  if (!regime->condition.empty()) return regime->condition;
  std::string text;
  for (const auto& listed : regime->listed) {
    const SweepPoint* const point = std::get_if<SweepPoint>(&listed);
    text += (text.empty() ? "" : "; ") + (point ? point_text(*point) : std::get<SweepValue>(listed).text());
  }
  return text;
}

/// The results at the points of a regime.
ResultTable covered_rows(ResultTable table, const Regime& regime) {
  std::erase_if(table.rows, [&](const ResultRow& row) { return !regime.holds(row.point); });
  return table;
}

/// The results with the first `seeds` seeds of every arm and point.
ResultTable first_seeds(ResultTable table, int seeds) {
  std::erase_if(table.rows, [&](const ResultRow& row) { return row.seed >= seeds; });
  return table;
}

/// The names in the metrics of a claim.
std::vector<std::string> judged_names(const Claim& claim) {
  if (const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement)) return {rate->query.metric};
  std::vector<std::string> names;
  const auto add = [&](const ClaimSide& side) {
    if (side.metric.empty()) return;
    for (const std::string& name : Expression::parse(side.metric, "metric").names()) names.push_back(name);
  };
  if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) add(trend->side);
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    add(comparison->left);
    add(comparison->right);
  }
  return names;
}

/// ", each arm at its best by test_nmse_top1", and whether the claim judges something else.
std::string tuned_text(const Claim& claim) {
  std::string text = ", each arm at its best";
  if (claim.tuned_by.empty()) return text;
  text += " by " + claim.tuned_by;
  const std::vector<std::string> judged = judged_names(claim);
  const bool judges_it = std::find(judged.begin(), judged.end(), claim.tuned_by) != judged.end();
  return judges_it ? text : text + ", which is not what the claim judges";
}

ClaimResult evaluate_claim(const Claim& claim, const RowIndex& rows, const MetricFacts& metrics,
                           const std::optional<int>& fixed_seeds, const std::string& path) {
  ClaimResult result;
  result.id = claim.id;
  result.origin = claim.origin;
  result.source = claim.source;
  result.reported = claim.reported;
  result.reading = claim.reading;
  result.regime = regime_text(claim.regime);
  result.quote = claim.quote;
  result.is_tuned = claim.is_tuned;
  const Regime regime(claim.regime, rows, path + ".regime");
  result.tuned_by = claim.tuned_by;
  if (const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement)) {
    result.is_rate = true;
    result.statement = rate_claim_text(*rate);
    std::optional<ResultTable> part;  // copied only where rows are left out, because traces are long
    if (claim.regime && claim.regime->is_given()) part = covered_rows(rows.table(), regime);
    if (fixed_seeds) part = first_seeds(part ? std::move(*part) : rows.table(), *fixed_seeds);
    result.points = {evaluate_rate_claim(*rate, claim.smallest_effect, part ? *part : rows.table(), path)};
    if (fixed_seeds)
      add_note(result.points.front(), fmt::format("no sequence for rates: judged at {} seeds", *fixed_seeds));
  } else {
    const Trend* const trend = std::get_if<Trend>(&claim.statement);
    if (trend) result.shape = trend->shape;
    const PointedClaim pointed = trend
                                     ? find_points(*trend, regime, rows, path)
                                     : find_points(std::get<Comparison>(claim.statement), regime, rows, path);
    result.statement = pointed.text;
    result.matched = pointed.matched;
    result.points = evaluate_points(pointed, claim, rows, metrics, fixed_seeds.has_value());
  }
  if (claim.is_tuned) result.statement += tuned_text(claim);
  result.text = claim.text.value_or(result.statement);
  if (claim.reading == Reading::excluded) {
    result.verdict = Verdict::excluded;
    return result;
  }
  combine_points(result);
  result.p_value = claim_p_value(result);
  return result;
}

}  // namespace

std::string verdict_counts(const std::vector<std::string>& verdicts) {
  std::string text;
  for (const Verdict verdict : {Verdict::reproduced, Verdict::refuted, Verdict::equivalent,
                                Verdict::inconclusive, Verdict::excluded}) {
    const auto count = std::count(verdicts.begin(), verdicts.end(), to_string(verdict));
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(verdict));
  }
  return text;
}

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return "reproduced";
    case Verdict::refuted:
      return "refuted";
    case Verdict::equivalent:
      return "equivalent";
    case Verdict::uninformative:
      return "uninformative";
    case Verdict::outside:
      return "outside";
    case Verdict::excluded:
      return "excluded";
    case Verdict::inconclusive:
      break;
  }
  return "inconclusive";
}

std::vector<ClaimResult> evaluate_claims(const std::vector<Claim>& claims, const ResultTable& table,
                                         const std::function<bool(const std::string&)>& is_positive,
                                         const std::optional<int>& fixed_seeds,
                                         const std::function<bool(const std::string&)>& larger_is_better) {
  const RowIndex rows(table);
  const MetricFacts metrics = {is_positive, larger_is_better};
  std::vector<ClaimResult> results;
  for (const Claim& claim : claims) {
    results.push_back(
        evaluate_claim(claim, rows, metrics, fixed_seeds, fmt::format("claims[{}]", results.size())));
  }
  return results;
}

namespace {

void check_name(const std::string& name, const std::vector<std::string>& allowed, const char* what,
                const std::string& path) {
  if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
    throw InvalidOption(path, unknown_name(what, name, allowed));
}

/// The slopes of both sides at the repetitions that have both. A constant has the same value at each.
struct Slopes {
  std::vector<double> left, right;
};

Slopes paired_slopes(const RateEstimate& left, const RateEstimate* right, double constant) {
  Slopes slopes;
  for (std::size_t r = 0; r < left.slopes.size(); ++r) {
    const std::optional<double> other =
        right ? (r < right->slopes.size() ? right->slopes[r] : std::nullopt) : std::optional(constant);
    if (!left.slopes[r] || !other) continue;
    slopes.left.push_back(*left.slopes[r]);
    slopes.right.push_back(*other);
  }
  return slopes;
}

std::string note_on(const RateEstimate& estimate, const std::string& arm) {
  std::string note;
  if (estimate.left_out > 0)
    note = fmt::format("{} repetitions of {} have fewer than three errors", estimate.left_out, arm);
  if (estimate.missing > 0)
    note += fmt::format("{}{} errors of {} are missing, so that nothing is decided", note.empty() ? "" : "; ",
                        estimate.missing, arm);
  return note;
}

}  // namespace

ClaimPoint evaluate_rate_claim(const RateClaim& claim, const std::optional<double>& smallest_effect,
                               const ResultTable& table, const std::string& path) {
  const RateQuery& query = claim.query;
  check_name(query.arm, table.arms, "arm", path + ".arm");
  check_name(query.along, table.sweep_paths, "swept path", path + ".along");
  const std::string* const than = std::get_if<std::string>(&claim.against);
  if (than) check_name(*than, table.arms, "arm", path + ".than");
  const double constant = than ? 0 : std::get<double>(claim.against);

  const RateEstimate estimate = estimate_rate(rate_data(table, query));
  RateEstimate other;
  if (than) {
    RateQuery other_query = query;
    other_query.arm = *than;
    other = estimate_rate(rate_data(table, other_query));
  }
  const Slopes slopes = paired_slopes(estimate, than ? &other : nullptr, constant);

  ClaimPoint point;
  point.left_at = point.right_at = query.where;
  point.pairs = static_cast<int>(slopes.left.size());
  point.note = note_on(estimate, query.arm);
  if (const std::string note = note_on(other, than ? *than : ""); !note.empty())
    point.note += (point.note.empty() ? "" : "; ") + note;
  if (point.pairs == 0) return point;
  const std::vector<double> differences = paired_differences(slopes.left, slopes.right);
  point.left = mean_estimate(slopes.left);
  point.right = than ? mean_estimate(slopes.right) : MeanEstimate{constant, point.pairs, std::nullopt};
  point.difference = mean_estimate(differences);
  if (point.pairs >= kMinimumPairs && estimate.is_complete() && other.is_complete()) {
    DecisionRule rule = {{-claim.tolerance, claim.tolerance}, std::nullopt, 1};
    if (claim.slower) rule.claimed = {0, std::numeric_limits<double>::infinity()};
    if (smallest_effect) rule.negligible = Interval{-*smallest_effect, *smallest_effect};
    judge_differences(differences, rule, point);
  }
  return point;
}

std::string rate_claim_text(const RateClaim& claim) {
  const std::string* const than = std::get_if<std::string>(&claim.against);
  const std::string against =
      than ? "that of " + *than : fmt::format("n^{}", std::get<double>(claim.against));
  return fmt::format("{} of {} falls {} {} along {}", claim.query.metric, claim.query.arm,
                     claim.slower ? "more slowly than" : "as", against, claim.query.along);
}

}  // namespace moelab
