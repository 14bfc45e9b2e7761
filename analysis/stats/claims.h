#pragma once

/// Tests the claims of a scenario on its results.
///
/// A claim compares two sides over paired seeds at some sweep points. Let l_s and r_s be the values of the
/// two sides at seed s, each multiplied by its `factor`. The paired difference is
///     δ_s = ln l_s − ln r_s   if every metric of the claim is declared positive,
///     δ_s = l_s − r_s         otherwise.
/// If a positive metric is ≤ 0 at some point, the whole claim uses raw differences and a note says so.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/stats/intervals.h"
#include "analysis/stats/rates.h"
#include "analysis/stats/result_table.h"
#include "sim/base/options.h"

namespace moelab {

// Claims of a scenario: {"op": …, and the fields that bind() declares}

/// The time of a side: the start of training, its end, or a recorded step.
struct ClaimStep {
  enum class At { start, end, recorded };
  At at = At::end;
  std::int64_t step = 0;  ///< the step, for `recorded`

  bool operator==(const ClaimStep&) const = default;
  std::vector<Binding> alternatives();
};

/// One side of a claim. It is a constant, or a metric of an arm, which may be divided by another arm's
/// metric. It can also be the distance between two arms' curves of the metric.
struct ClaimSide {
  std::string value;  ///< a number or an expression of swept paths (expression.h); empty for an arm's metric
  std::string arm;
  std::string metric;         ///< a metric, or an expression of metrics and swept paths
  std::string relative_to;    ///< the arm whose metric divides this one, at the same point, step and seed
  std::string distance_from;  ///< the arm whose training curve is compared; the side is the curve_rmse
  double factor = 1;
  SweepPoint where;               ///< coordinates that replace coordinates of the claim's sweep point
  std::optional<ClaimStep> step;  ///< unset: the end of training
  bool is_from_value =
      false;  ///< the scenario writes the metric as a value; it belongs to the other side's arm
  void bind(Fields& fields);

  bool is_constant() const { return !value.empty(); }
  std::string text() const;
};

/// The sweep points of a claim.
struct ClaimPlaces {
  enum class Which { each, last, listed };
  Which which = Which::each;
  /// For `listed`: coordinates, or the bare value if one path is swept.
  std::vector<std::variant<SweepPoint, SweepValue>> listed;
  std::vector<AnyValue> written = {};  ///< the same places as written in the scenario
  std::vector<Binding> alternatives();
};

/// What the two sides of a comparison have in common when they are read, pair by pair.
///   steps   the ends of training, or the `step` of each side
///   loss    the training loss. The target is the larger of the two smallest recorded losses. Each side is
///           read at its first record with a loss at or below the target.
///   flops   the operations. The budget is the smaller of the two totals. Each side is read at its last
///           record within the budget.
enum class Matched { steps, loss, flops };
std::string to_string(Matched matched);

/// The metric that `matched` uses in addition to the compared metrics; empty for steps.
std::string matched_metric(Matched matched);

/// The sweep points that a claim covers: listed as in `at`, or by a condition on swept paths (expression.h).
/// Empty: all.
struct ClaimRegime {
  std::string condition;
  /// Coordinates, or the bare value if one path is swept.
  std::vector<std::variant<SweepPoint, SweepValue>> listed;
  std::vector<AnyValue> written = {};  ///< the same points as written in the scenario
  std::vector<Binding> alternatives();

  bool is_given() const { return !condition.empty() || !written.empty(); }
};

/// Ranges of l / r − 1, for sides l and r: left is below right, and left is above right.
inline constexpr Interval kBelow{-std::numeric_limits<double>::infinity(), 0};
inline constexpr Interval kAbove{0, std::numeric_limits<double>::infinity()};
inline bool has_lower_end(const Interval& range) {
  return range.low > kBelow.low;
}
inline bool has_upper_end(const Interval& range) {
  return range.high < kAbove.high;
}
/// Whether the signs of δ decide if l / r − 1 lies in the range: the range is kBelow or kAbove.
inline bool is_decided_by_signs(const Interval& range) {
  return has_lower_end(range) ? range.low == 0 && !has_upper_end(range) : range.high == 0;
}

/// What an operator of comparisons claims.
struct ComparisonRule {
  std::string op;  ///< the operator, as scenarios and sentences write it
  std::string help;
  /// The open range of l / r − 1 in which the claim holds. For raw differences it is the range of
  /// δ / |mean of r|.
  Interval (*range)(double tolerance) = nullptr;
  bool has_tolerance = false;  ///< a scenario gives the relative tolerance
};

/// A claim on the ratio of left to right.
struct Comparison {
  ClaimSide left, right;
  ComparisonRule rule;
  double tolerance = 0;  ///< if the rule has one
  ClaimPlaces at;
  Matched matched = Matched::steps;

  Interval range() const { return rule.range(tolerance); }
};

/// The judged comparisons of a trend. `ends` compares the last swept value with the first (for "step", the
/// end with the start). `monotone` also compares each value with the previous one.
enum class TrendShape { ends, monotone };
std::string to_string(TrendShape shape);

struct Trend {
  ClaimSide side;  ///< without `where` and `step`
  bool increases = false;
  std::string along;  ///< a swept path, or "step"
  TrendShape shape = TrendShape::ends;
};

/// A claim that the slope of ln metric on ln n equals a number within a tolerance, or is `slower` than a
/// slope.
struct RateClaim {
  RateQuery query;
  std::vector<double> window;  ///< as written in the scenario: two ends, or empty
  bool slower = false;
  std::variant<double, std::string> against = 0.0;  ///< a slope, or with `slower` an arm with a slope
  double tolerance = kRateTolerance;
};

/// Who makes the claim.
enum class Origin { paper, ours };
std::string to_string(Origin origin);

/// `main`: the reading of the paper's sentence that its family is judged by. `other`: a further reading,
/// which is shown next to it. `excluded`: a reading that the paper's own numbers rule out, so no result of it
/// speaks against the paper.
enum class Reading { main, other, excluded };
std::string to_string(Reading reading);

/// What a diverged cell does: it leaves its point undecided, or it loses against the other side.
///
/// With `loses` diverged cells leave the paired comparison. A diverged side counts as worse than any number.
/// A loss against the claim keeps a point from being reproduced, and a loss for it keeps a point from being
/// refuted. With fewer than 3 pairs, the sign test judges the losses and pairs together.
enum class Diverged { leaves, loses };

struct Claim {
  std::string id;
  std::variant<Comparison, Trend, RateClaim> statement;
  std::vector<std::string> arms;  ///< replaces the statement's arm: one claim for each; empty after expansion
  Origin origin = Origin::ours;
  Reading reading = Reading::main;
  std::optional<ClaimRegime> regime;
  std::string quote;  ///< the paper's sentence that the regime or another reading rests on
  Diverged diverged = Diverged::leaves;
  std::optional<std::string> text;  ///< the claim in words; a paper's claim keeps the paper's words
  /// Smaller effects do not matter: ln(1 + smallest_effect) for logarithms,
  /// otherwise in the metric's units.
  std::optional<double> smallest_effect;
  bool is_tuned = false;  ///< each arm has its own tuned values, such as learning rates, from equal budgets
  std::string tuned_by;   ///< the metric that these values were chosen by: the scenario's objective
  std::string source;
  std::string reported;  ///< the paper's number as written; never a pass mark; empty for none
  void bind(Fields& fields);
};

/// An operator of claims ("op"). Its default options are a Claim with a statement of its kind.
struct ClaimKind : KindEntry {};

/// The table entry of an operator that compares two sides.
ClaimKind comparison_operator(const ComparisonRule& rule);

/// The table of operators. A new operator is one file and one line in claim_kinds.cpp.
struct ClaimAxis {
  using Entry = ClaimKind;
  static constexpr const char* kTag = "op";
  static constexpr const char* kNoun = "operator";
  static const std::vector<ClaimKind>& table();
};
using ClaimOptions = OneOf<ClaimAxis>;

/// The verdict on a claim or a point. Only points can be `uninformative` or `outside`, and only claims can be
/// `excluded`, by their reading. DecisionRule says when the interval of a point decides.
enum class Verdict {
  reproduced,
  refuted,
  equivalent,
  /// Nothing is decided. So is a point with fewer than 3 pairs, and one with a cell of a pair that diverged,
  /// failed, is missing or lacks the metric. Its numbers use the complete pairs.
  inconclusive,
  /// Both sides have a mean nmse ≥ 1, which is no better than predicting the mean; or two arms are equal in
  /// every pair; or a loss of the task is compared, and no gradient of the task reaches the routers of both
  /// arms.
  uninformative,
  /// The point lies outside the claim's `regime`. It has numbers, but no part in the verdict.
  outside,
  excluded
};
std::string to_string(Verdict verdict);

/// "2 reproduced, 1 excluded" of the verdicts of claims, by name.
std::string verdict_counts(const std::vector<std::string>& verdicts);

/// P values of a point (intervals.h), without Bonferroni correction.
struct PointPValues {
  double supporting = 1;                            ///< for the claim
  double opposing = 1;                              ///< for the opposite of the claim
  std::optional<double> equivalent = std::nullopt;  ///< for an effect below the smallest effect
};

struct ClaimPoint {
  SweepPoint left_at, right_at;  ///< the point of each side; they differ with `where` and in trends
  std::optional<ClaimStep> left_step, right_step;  ///< in a monotone trend over training steps
  bool is_step = false;  ///< in a monotone trend: compares a value with the previous one
  /// Mean of the side over the complete pairs, before its factor; geometric for a positive metric. A constant
  /// has no interval. Unset if a value is censored.
  std::optional<MeanEstimate> left;
  std::optional<MeanEstimate> right;
  double left_factor = 1, right_factor = 1;
  /// The mean of δ over the seeds, and the interval that decided. For fixed seeds it is a Student-t interval.
  /// Unset if a value is censored.
  std::optional<MeanEstimate> difference;
  /// Of the interval of `difference`, which is the one that decided. This is the 95 % interval, except where
  /// only the wider one refutes, or fails to refute: then it is the wider one.
  double level = 0.95;
  /// The ranges of δ that judged it: where the claim holds, and where effects are too small to matter.
  std::optional<Interval> claimed, negligible;
  bool logarithmic = false;           ///< δ is a log difference
  int pairs = 0;                      ///< complete pairs
  int lost_left = 0, lost_right = 0;  ///< pairs whose one side diverged, with `diverged: loses`
  bool is_complete = true;  ///< false if a pair is left out because its cell diverged, failed or is missing
  /// Set if a value is right-censored. Then the sign test decides, by the pairs whose order is known. A value
  /// censored at or after the other side's value is the larger one. The order of two censored values is not
  /// known. Let k pairs lie on the claimed side and j on the other side, and let the claim have m points. The
  /// point is reproduced if sign_p_value(k, k + j) ≤ 0.05, and refuted if sign_p_value(j, k + j) ≤ 0.05/m.
  /// The sign test never decides `~`.
  std::optional<SignCounts> signs;
  /// Judged by confidence sequences, which `difference` then contains. Arms and points may have different
  /// numbers of seeds.
  bool is_sequential = false;
  std::optional<Interval> median_interval = std::nullopt;  ///< for δ; set if is_sequential
  std::optional<Median> left_median, right_median;         ///< replace the means if a value is censored
  Verdict verdict = Verdict::inconclusive;
  /// Set if the pairs can decide the point.
  std::optional<PointPValues> p_values;
  /// Number of seeds that would decide an inconclusive point, at the present mean and spread (or sign
  /// shares). Unset if no number would, or if some cells are not done.
  std::optional<int> seeds_to_decide;
  Verdict verdict_then = Verdict::inconclusive;  ///< the verdict with that number of seeds
  std::string note;  ///< why the point is inconclusive or its scale is unusual; otherwise empty

  /// The pairs that were seen: complete ones, and those whose one side diverged, with `diverged: loses`.
  int seen_pairs() const { return pairs + lost_left + lost_right; }
};

struct ClaimResult {
  std::string id;
  Verdict verdict = Verdict::inconclusive;
  Origin origin = Origin::ours;
  std::string text;                 ///< the claim in words: its `text`, or composed from its sides
  std::string statement;            ///< the judged statement, composed from its sides
  std::optional<TrendShape> shape;  ///< set for a trend
  bool is_rate = false;             ///< the sides are slopes
  std::string source;
  std::string reported;  ///< see Claim
  Reading reading = Reading::main;
  std::string regime;  ///< the claim's regime as written, or empty
  std::string quote;   ///< see Claim
  Matched matched = Matched::steps;
  bool is_tuned = false;  ///< see Claim
  std::string tuned_by;   ///< see Claim
  std::vector<ClaimPoint> points;
  /// P value of the verdict. Refuted: the smallest opposing p value times the number of points. Reproduced or
  /// equivalent: the largest p value for that verdict. Inconclusive: the smaller of the values for refuted
  /// and reproduced. Unset if a point cannot be decided.
  std::optional<double> p_value;
  /// For an inconclusive claim: the smallest number among the points that would be refuted, because one such
  /// point decides the claim. If there is none, and all points would then agree on one verdict, the largest
  /// number that a point needs.
  std::optional<int> seeds_to_decide;
};

/// Combines verdicts. The parts are points of a claim, or claims that test one sentence. Over all parts that
/// are neither uninformative nor outside:
///   refuted         if one part is refuted
///   reproduced      if every part is reproduced
///   equivalent      if every part is equivalent
///   inconclusive    otherwise
Verdict combined_verdict(const std::vector<Verdict>& parts);

/// Judges claims. Metrics with `is_positive` are compared by their logarithms. A diverged cell is worst where
/// the metric is smallest for metrics with `larger_is_better`, otherwise where it is largest. Throws
/// InvalidOption ("claims[i]…") for unknown arms or points.
///
/// A step of a monotone trend can also refute the trend. Each step is judged like a point. Steps and ends
/// count as points. The ends decide the other verdicts.
///
/// `fixed_seeds` is the number of seeds of every arm and point. It marks a sequential run, which adds seeds
/// while claims are undecided.
std::vector<ClaimResult> evaluate_claims(
    const std::vector<Claim>& claims, const ResultTable& table,
    const std::function<bool(const std::string&)>& is_positive,
    const std::optional<int>& fixed_seeds = std::nullopt,
    const std::function<bool(const std::string&)>& larger_is_better = {});

// Combination of points

/// Sets verdict and seeds_to_decide from the points.
void combine_points(ClaimResult& result);

/// Computes ClaimResult::p_value.
std::optional<double> claim_p_value(const ClaimResult& result);

// Verdict on one point

/// The contract requires this many pairs. With fewer pairs, the intervals are too wide to be useful.
constexpr int kMinimumPairs = 3;
constexpr double kLevel = 0.95;

/// The criteria for a difference at one point. The 95 % interval supports the claim. The interval at level
/// 1 − 0.05/m refutes it, with m the number of points inside the regime. This Bonferroni correction is needed
/// because one wrong point would refute the whole claim.
struct DecisionRule {
  /// The open range of δ in which the claim holds: for `<` and `>` one side of zero, for `~` the tolerance
  /// band. The band is [ln(1−tol), ln(1+tol)] for log differences, and ±tol·|mean of r| for raw ones. The
  /// claim is reproduced if the 95 % interval lies inside the range. It is refuted if the wider interval lies
  /// completely outside. Otherwise it is inconclusive.
  Interval claimed;
  /// The range of effects that do not matter, whatever their sign: ±ln(1 + smallest_effect) for log
  /// differences, and ±smallest_effect for raw ones. The two sides are equivalent if the 95 % interval lies
  /// inside it.
  std::optional<Interval> negligible;
  int tests = 1;  ///< number of points; each could refute the claim
  /// Confidence sequences (intervals.h) replace these intervals and tests, from kLeastSequentialPairs pairs
  /// on. They stay valid however often you look. A point is uninformative if the sequences of both means lie
  /// at or above 1. It stays undecided if only the means do.
  bool is_sequential = false;
  bool is_rounding = false;  ///< the differences are rounding errors; no number of seeds decides
};

/// Sets verdict, p values and seeds_to_decide from at least kMinimumPairs differences.
void judge_differences(const std::vector<double>& differences, const DecisionRule& rule, ClaimPoint& point);

/// Appends a sentence to the point's note.
void add_note(ClaimPoint& point, const std::string& sentence);

// Claims on rates of convergence (slopes: rates.h). They have no sequence: they use the fixed design, with
// the seeds that every arm and point has.

// A slope ρ with tolerance t: reproduced if the 95 % interval of the mean slope lies within ρ ± t, and
// refuted if it lies completely outside.
//
// `slower` than a slope or another arm: the slope of the claim's arm is larger, so its error decreases more
// slowly. Two arms are compared by the slopes of equal repetitions. Reproduced if the 95 % interval of the
// difference lies above zero, and refuted if it lies below.

/// Judges a claim on a rate. `left` of the point is the slope, and `right` is the slope that it is compared
/// with. The verdict is inconclusive where neither rule decides. This includes fewer than 3 slopes and
/// missing errors, because diverged fits may be those with large errors. Throws InvalidOption below `path`
/// for unknown arms and swept paths.
ClaimPoint evaluate_rate_claim(const RateClaim& claim, const std::optional<double>& smallest_effect,
                               const ResultTable& table, const std::string& path);

/// Describes the claim: "error of root falls as n^-0.5 along data.train_samples".
std::string rate_claim_text(const RateClaim& claim);

}  // namespace moelab
