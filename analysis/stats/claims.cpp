#include "analysis/stats/claims.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/stats/bands.h"
#include "analysis/stats/claim_combination.h"
#include "analysis/stats/claim_judgement.h"
#include "analysis/stats/claim_sides.h"
#include "analysis/stats/rate_claims.h"
#include "analysis/stats/row_index.h"
#include "analysis/stats/sequences.h"

namespace moelab {
namespace {

/// A claim with what its points share.
struct JudgedClaim {
  const PointedClaim& pointed;
  bool declared = false;     ///< every metric is positive by definition
  bool logarithmic = false;  ///< and so it is
  std::optional<double> smallest_effect;
  bool is_sequential = false;
};

std::vector<double> scaled_ends(const std::vector<Interval>& observations, double factor, bool logarithmic) {
  std::vector<double> values;
  for (const Interval& observation : observations) {
    const double value = observation.low * factor;
    values.push_back(logarithmic ? std::log(value) : value);
  }
  return values;
}

/// The open range of δ in which the claim holds.
Interval claimed_range(const PointedClaim& claim, const ClaimPoint& point) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (claim.op == '<') return {-infinity, 0};
  if (claim.op == '>') return {0, infinity};
  if (point.logarithmic)
    return {claim.tolerance < 1 ? std::log1p(-claim.tolerance) : -infinity, std::log1p(claim.tolerance)};
  const double scale = claim.tolerance * std::abs(claim.right.factor * point.right->mean);
  return {-scale, scale};
}

/// The smallest effect in the units of δ; none where that is a ratio and δ is not.
std::optional<Interval> negligible_range(const JudgedClaim& claim) {
  if (!claim.smallest_effect || claim.declared != claim.logarithmic) return std::nullopt;
  const double most = claim.logarithmic ? std::log1p(*claim.smallest_effect) : *claim.smallest_effect;
  return Interval{-most, most};
}

/// Of a decided run with the interval of its sequence, none where no mean is excluded yet.
MeanEstimate side_estimate(const ClaimSide& side, const std::vector<Interval>& observations,
                           bool is_sequential) {
  const std::vector<double> values = scaled_ends(observations, 1, false);
  MeanEstimate estimate = seed_estimate(values, false, is_sequential);
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

/// A decided run would stop at a look at which both means are above 1 by chance: their sequences have to be.
bool is_surely_uninformative(const ClaimPoint& point) {
  const auto is_sure = [](const MeanEstimate& side) { return side.interval && side.interval->low >= 1; };
  return is_sure(*point.left) && is_sure(*point.right);
}

void judge_point(const JudgedClaim& claim, const ClaimPairs& pairs, int tests, ClaimPoint& point) {
  const PointedClaim& pointed = claim.pointed;
  const int least = claim.is_sequential ? kLeastSequentialPairs : kMinimumPairs;
  const bool is_judged = point.pairs >= least && pairs.problem.empty();
  if (point.pairs < least)
    add_note(point, fmt::format("{} of the {} pairs that a verdict needs", point.pairs, least));
  if (!pairs.exact()) {
    point.signs = sign_counts(pointed, pairs);
    point.left_median = median_of(pairs.left);
    point.right_median = median_of(pairs.right);
    if (is_judged) judge_signs(pointed.op, tests, claim.is_sequential, point);
    return;
  }
  const std::vector<double> differences =
      paired_differences(scaled_ends(pairs.left, pointed.left.factor, claim.logarithmic),
                         scaled_ends(pairs.right, pointed.right.factor, claim.logarithmic));
  point.left = side_estimate(pointed.left, pairs.left, claim.is_sequential);
  point.right = side_estimate(pointed.right, pairs.right, claim.is_sequential);
  point.difference = seed_estimate(differences, false, claim.is_sequential);
  // Whatever a sequence says of so few pairs decides nothing, and is not shown.
  if (claim.is_sequential && point.pairs < least) point.difference->interval.reset();
  if (!is_judged) return;
  if (is_uninformative(pointed, point) && claim.is_sequential && !is_surely_uninformative(point)) {
    add_note(point, "both sides are near trivial (nmse 1): more pairs tell whether they are better");
  } else if (is_uninformative(pointed, point)) {
    point.verdict = Verdict::uninformative;
    add_note(point, "both sides are no better than trivial (nmse ≥ 1)");
  } else {
    judge_differences(differences,
                      {claimed_range(pointed, point), negligible_range(claim), tests, claim.is_sequential},
                      point);
  }
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
  point.is_complete = pairs.problem.empty();
  point.note = pairs.problem;
  if (point.pairs == 0) {
    if (point.note.empty()) point.note = "no cells";
  } else {
    point.left_factor = claim.pointed.left.factor;
    point.right_factor = claim.pointed.right.factor;
    judge_point(claim, pairs, tests, point);
  }
  if (claim.declared && !claim.logarithmic && !point.signs)
    add_note(point, "raw differences: a value is not above 0");
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

/// Judges the claim at its points.
std::vector<ClaimPoint> evaluate_points(const PointedClaim& pointed, const std::optional<double>& effect,
                                        const RowIndex& rows,
                                        const std::function<bool(const std::string&)>& is_positive,
                                        bool is_sequential) {
  std::vector<ClaimPairs> pairs;
  for (const PointPair& at : pointed.points) pairs.push_back(collect_pairs(pointed, at, rows, is_sequential));
  JudgedClaim claim = {pointed, false, false, effect, is_sequential};
  claim.declared = is_declared_positive(pointed.left, rows, is_positive) &&
                   is_declared_positive(pointed.right, rows, is_positive);
  claim.logarithmic = claim.declared && all_positive(pointed, pairs);
  const int tests = static_cast<int>(pointed.points.size());
  std::vector<ClaimPoint> points;
  for (std::size_t i = 0; i < pointed.points.size(); ++i)
    points.push_back(evaluate_point(claim, pointed.points[i], pairs[i], tests));
  return points;
}

/// The seeds that every arm and point has.
ResultTable first_seeds(ResultTable table, int seeds) {
  std::erase_if(table.rows, [&](const ResultRow& row) { return row.seed >= seeds; });
  return table;
}

ClaimResult evaluate_claim(const Claim& claim, const RowIndex& rows,
                           const std::function<bool(const std::string&)>& is_positive,
                           const std::optional<int>& fixed_seeds, const std::string& path) {
  ClaimResult result;
  result.id = claim.id;
  result.origin = claim.origin;
  result.source = claim.source;
  result.reported = claim.reported;
  result.is_tuned = claim.is_tuned;
  if (const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement)) {
    result.statement = rate_claim_text(*rate);
    std::optional<ResultTable> fixed;
    if (fixed_seeds) fixed = first_seeds(rows.table(), *fixed_seeds);
    result.points = {evaluate_rate_claim(*rate, claim.smallest_effect, fixed ? *fixed : rows.table(), path)};
    if (fixed_seeds)
      add_note(result.points.front(), fmt::format("no sequence for rates: judged at {} seeds", *fixed_seeds));
  } else {
    const Trend* const trend = std::get_if<Trend>(&claim.statement);
    if (trend) result.shape = trend->shape;
    const PointedClaim pointed = trend ? find_points(*trend, rows, path)
                                       : find_points(std::get<Comparison>(claim.statement), rows, path);
    result.statement = pointed.text;
    result.matched = pointed.matched;
    result.points =
        evaluate_points(pointed, claim.smallest_effect, rows, is_positive, fixed_seeds.has_value());
  }
  if (claim.is_tuned) result.statement += ", each arm at its best";
  result.text = claim.text.value_or(result.statement);
  combine_points(result);
  result.p_value = claim_p_value(result);
  return result;
}

}  // namespace

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
    case Verdict::inconclusive:
      break;
  }
  return "inconclusive";
}

std::vector<ClaimResult> evaluate_claims(const std::vector<Claim>& claims, const ResultTable& table,
                                         const std::function<bool(const std::string&)>& is_positive,
                                         const std::optional<int>& fixed_seeds) {
  const RowIndex rows(table);
  std::vector<ClaimResult> results;
  for (const Claim& claim : claims) {
    results.push_back(
        evaluate_claim(claim, rows, is_positive, fixed_seeds, fmt::format("claims[{}]", results.size())));
  }
  return results;
}

}  // namespace moelab
