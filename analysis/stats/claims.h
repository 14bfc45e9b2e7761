#pragma once

/// A scenario's claims, confronted with its results.
///
/// A claim compares two sides over paired seeds at some sweep points. With l_s and r_s the values of the two
/// sides at seed s, each times its `factor`, the paired difference is δ_s = ln l_s − ln r_s when every metric
/// of the claim is declared positive, else δ_s = l_s − r_s. A positive metric that is not above 0 somewhere
/// turns the whole claim to raw differences, and a note says so. `estimate` is the mean of δ over the seeds,
/// `interval` its 95 % Student-t interval.
///
/// At one point, with the 95 % interval for the claim and, against it, the interval at level 1 − 0.05/m, m
/// the number of points (Bonferroni: one point in error would refute the whole claim):
///   `<`, `>`  reproduced when the 95 % interval lies on the claimed side of zero; refuted when the wider one
///             lies wholly on the other side; else inconclusive.
///   `~`       the tolerance band is [ln(1−tol), ln(1+tol)] for differences of logarithms and
///             ±tol·|mean of r| for raw ones. Reproduced when the 95 % interval lies inside; refuted when the
///             wider one lies wholly outside; else inconclusive.
/// Where it would be inconclusive and the 95 % interval lies within the claim's smallest effect,
/// ±ln(1 + smallest_effect) for differences of logarithms and ±smallest_effect for raw ones, it is
/// equivalent. A point with fewer than 3 pairs, or with a pair whose cell diverged, failed, is missing or
/// lacks the metric, is inconclusive; its numbers are over the complete pairs. A point both of whose sides
/// have a mean nmse of 1 or more, no better than trivial, is uninformative.
///
/// Where a value of the point is right-censored, the sign test decides on the pairs of which is known which
/// side is above: a value censored at or after the other side's is; two censored ones are a tie. With k pairs
/// on the claimed side and j on the other, it is reproduced when sign_p_value(k, k + j) ≤ .05, and refuted
/// when sign_p_value(j, k + j) ≤ .05/m; `~` is then never decided.
///
/// A run that was decided (seeds added while claims were open) is judged by the sequences of sequences.h in
/// place of these intervals and tests, from kLeastSequentialPairs pairs on, arms and points having the seeds
/// that they have: valid however often one looked. A point is uninformative there where the sequences of both
/// means lie at 1 or above, and stays open where only the means do. The sign sequence's interval for the
/// median of δ stands beside that of the mean. Claims on rates have no sequence and are judged at the fixed
/// design, by the seeds that every arm and point has.
///
/// Of the points that are not uninformative: the claim is refuted when it is at some point, reproduced when
/// it is at every point, equivalent when it is at every point, else inconclusive. A monotone trend is refuted
/// by its steps, too, each judged like a point (m the number of steps and ends), and its ends decide the
/// rest.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/stats/intervals.h"
#include "analysis/stats/rates.h"
#include "analysis/stats/result_table.h"

namespace moelab {

// What a scenario claims of its results; how claims are judged: claims.h, rate_claims.h.

/// When a side is taken: at the end of training, at its start, or at a recorded step.
struct ClaimStep {
  enum class At { end, start, recorded };
  At at = At::end;
  std::int64_t step = 0;  ///< of `recorded`

  bool operator==(const ClaimStep&) const = default;
};

/// One side: a constant, or a metric of an arm, which may be divided by that of another, or the distance of
/// two arms' curves of the metric.
struct ClaimSide {
  std::string value;  ///< a number or an expression of swept paths (expression.h); empty for an arm's metric
  std::string arm;
  std::string metric;         ///< a metric, or an expression of metrics and swept paths
  std::string relative_to;    ///< arm by whose metric, at the same point, step and seed, it is divided
  std::string distance_from;  ///< arm from whose curve over training the side is the curve_rmse
  double factor = 1;
  SweepPoint where;               ///< coordinates that replace the claim's sweep point
  std::optional<ClaimStep> step;  ///< unset: the end

  bool is_constant() const { return !value.empty(); }
  std::string text() const;
};

/// The sweep points at which a claim stands.
struct ClaimPlaces {
  enum class Which { each, last, listed };
  Which which = Which::each;
  /// Of `listed`: coordinates, or the bare value of the only swept path.
  std::vector<std::variant<SweepPoint, SweepValue>> listed;
};

/// At what the two sides of a comparison are equal where they are read, pair by pair: the ends of training
/// (or what each side's `step` says); the training loss, the greater of the two least that were recorded,
/// each side at its first record at or below it; or the operations, the fewer of the two, each side at its
/// last record within them.
enum class Matched { steps, loss, flops };
std::string to_string(Matched matched);

/// What `matched` looks at, beside the metrics compared; empty for steps.
std::string matched_metric(Matched matched);

/// left < right, left > right, or left equal to right within a relative tolerance.
struct Comparison {
  ClaimSide left, right;
  char op = '<';         ///< '<', '>' or '~'
  double tolerance = 0;  ///< of '~'
  ClaimPlaces at;
  Matched matched = Matched::steps;
};

/// What of a trend is judged: the last swept value (the end, for "step") against the first; or that and each
/// step from one value to the next.
enum class TrendShape { ends, monotone };
std::string to_string(TrendShape shape);

struct Trend {
  ClaimSide side;  ///< without a place of its own
  bool increases = false;
  std::string along;  ///< a swept path, or "step"
  TrendShape shape = TrendShape::ends;
};

/// The slope of ln metric on ln n is a number within a tolerance, or `slower` than one.
struct RateClaim {
  RateQuery query;
  bool slower = false;
  std::variant<double, std::string> against = 0.0;  ///< a slope, or with `slower` an arm that has one
  double tolerance = kRateTolerance;
};

/// Whose claim it is.
enum class Origin { ours, paper };
std::string to_string(Origin origin);

struct Claim {
  std::string id;
  std::variant<Comparison, Trend, RateClaim> statement;
  Origin origin = Origin::ours;
  std::optional<std::string> text;  ///< in words, those of the paper where it is the paper's
  /// Effects below it do not matter: of logarithms ln(1 + it), else in the metric's units.
  std::optional<double> smallest_effect;
  bool is_tuned = false;  ///< each arm has rates (and what else) of its own, tuned with equal budgets
  std::string source;
  std::string reported;  ///< the paper's number as the scenario writes it, never a pass mark; empty for none
};

/// `uninformative` is of points alone.
enum class Verdict { reproduced, refuted, equivalent, inconclusive, uninformative };
std::string to_string(Verdict verdict);

/// P values of a point, see significance.h; without Bonferroni.
struct PointPValues {
  double supporting = 1;                            ///< of the claim
  double opposing = 1;                              ///< of its contrary
  std::optional<double> equivalent = std::nullopt;  ///< of an effect below the smallest
};

struct ClaimPoint {
  SweepPoint left_at, right_at;  ///< where each side was taken; they differ with `where` and in trends
  std::optional<ClaimStep> left_step, right_step;  ///< of a monotone trend along the steps of training
  bool is_step = false;                            ///< of a monotone trend, one value against that before
  std::optional<MeanEstimate> left;  ///< mean of the side over the complete pairs, before its factor; a
                                     ///< constant has no interval; none where a value is censored
  std::optional<MeanEstimate> right;
  double left_factor = 1, right_factor = 1;
  std::optional<MeanEstimate> difference;  ///< δ: estimate and 95 % interval; none where a value is censored
  bool logarithmic = false;                ///< δ is a difference of logarithms
  int pairs = 0;                           ///< complete pairs
  bool is_complete = true;                 ///< no pair is left out, whose cell diverged, failed or is missing
  std::optional<SignCounts> signs;         ///< where a value is censored
  bool is_sequential = false;              ///< judged by sequences; `difference` then has theirs
  std::optional<Interval> median_interval = std::nullopt;  ///< of δ, then
  std::optional<Median> left_median, right_median;         ///< there, in place of the means
  Verdict verdict = Verdict::inconclusive;
  std::optional<PointPValues> p_values;  ///< of a point that its pairs can decide
  /// Where it is inconclusive: the seeds, at the present mean and spread (shares of signs), that would
  /// decide; none where no number would, or the cells are not all done.
  std::optional<int> seeds_to_decide;
  Verdict verdict_then = Verdict::inconclusive;  ///< with so many seeds
  std::string note;  ///< why the point is inconclusive or its scale unusual; else empty
};

struct ClaimResult {
  std::string id;
  Verdict verdict = Verdict::inconclusive;
  Origin origin = Origin::ours;
  std::string text;                 ///< the claim in words: its own `text`, or composed from its sides
  std::string statement;            ///< what was judged, composed from its sides
  std::optional<TrendShape> shape;  ///< of a trend: which was judged
  std::string source;
  std::string reported;  ///< see Claim
  Matched matched = Matched::steps;
  bool is_tuned = false;  ///< see Claim
  std::vector<ClaimPoint> points;
  /// Of the verdict: where it is refuted, the least of the opposing ones times their number; where it is
  /// reproduced or equivalent, the greatest of those for it; where it is inconclusive the smaller of the
  /// first two. None where a point cannot be decided.
  std::optional<double> p_value;
  /// Where it is inconclusive: the least of the points that lead to refutation, since one decides it; without
  /// such a point the most that one needs, if all then stand for one verdict.
  std::optional<int> seeds_to_decide;
};

/// Of parts that stand together, such as the points of a claim, or the claims that rest on one sentence; see
/// above.
Verdict combined_verdict(const std::vector<Verdict>& parts);

/// Judges claims. A metric of which `is_positive` holds is compared by its logarithm. Throws InvalidOption
/// ("claims[i]…") for arms and points that do not exist. With `fixed_seeds`, those of every arm and point,
/// the run was decided.
std::vector<ClaimResult> evaluate_claims(const std::vector<Claim>& claims, const ResultTable& table,
                                         const std::function<bool(const std::string&)>& is_positive,
                                         const std::optional<int>& fixed_seeds = std::nullopt);

// The verdict on a claim from those on its points, see claims.h.

/// Fills verdict and seeds_to_decide from the points.
void combine_points(ClaimResult& result);

/// See ClaimResult::p_value.
std::optional<double> claim_p_value(const ClaimResult& result);

// The verdict on one point of a claim, see claims.h.

/// Fewer pairs than this give intervals too wide to mean anything (the contract's rule).
constexpr int kMinimumPairs = 3;
constexpr double kLevel = 0.95;

/// What a difference is held against.
struct DecisionRule {
  Interval claimed;                    ///< the open range in which the claim holds
  std::optional<Interval> negligible;  ///< effects that do not matter
  int tests = 1;                       ///< points, any of which would refute the claim
  bool is_sequential = false;          ///< by the sequences of sequences.h, at any number of pairs
};

/// Verdict, p values and seeds_to_decide from at least kMinimumPairs differences.
void judge_differences(const std::vector<double>& differences, const DecisionRule& rule, ClaimPoint& point);

/// The same from point.signs, of a claim with `op` < or >; '~' stays inconclusive. Adds to the note.
void judge_signs(char op, int tests, bool is_sequential, ClaimPoint& point);

/// Appends a sentence to the point's note.
void add_note(ClaimPoint& point, const std::string& sentence);

// Claims on rates of convergence, judged by the slopes of rates.h.
//
// A slope ρ within a tolerance t: reproduced when the 95 % interval of the mean slope lies within ρ ± t,
// refuted when wholly outside.
// `slower` than a slope or than another arm: the slope is above it (the error falls more slowly); of two
// arms the slopes of equal repetitions are compared. Reproduced when the 95 % interval of the difference
// lies above zero, refuted when below. Inconclusive otherwise, with fewer than 3 slopes, and where an
// error is missing: fits that diverged may be those with the large errors.

/// `left` is the slope, `right` what it is held against. Throws InvalidOption below `path` for arms and swept
/// paths that do not exist.
ClaimPoint evaluate_rate_claim(const RateClaim& claim, const std::optional<double>& smallest_effect,
                               const ResultTable& table, const std::string& path);

/// "error of root falls as n^-0.5 along data.train_samples".
std::string rate_claim_text(const RateClaim& claim);

}  // namespace moelab
