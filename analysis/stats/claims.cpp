#include "analysis/stats/claims.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/stats/claim_points.h"
#include "analysis/stats/curve_rmse.h"
#include "analysis/stats/rate_claims.h"
#include "analysis/stats/row_index.h"

namespace moelab {
namespace {

/// Fewer pairs than this give intervals too wide to mean anything (the contract's rule).
constexpr int kMinimumPairs = 3;
constexpr double kLevel = 0.95;

/// The paired values of a claim at one of its points, factors not applied.
struct Pairs {
  std::vector<double> left, right;
  std::string problem;  ///< why a pair is incomplete; empty when all are complete
};

const ResultRow* find_row(const RowIndex& rows, const std::string& arm, const SweepPoint& point, int seed) {
  const auto& of_arm = rows.rows(arm, point);
  const auto found = std::lower_bound(of_arm.begin(), of_arm.end(), seed,
                                      [](const auto& row, int wanted) { return row.first < wanted; });
  return found != of_arm.end() && found->first == seed ? found->second : nullptr;
}

const MetricValues* metrics_at(const ResultRow& row, const std::optional<ClaimStep>& step) {
  const ClaimStep wanted = step.value_or(ClaimStep{});
  if (wanted.at == ClaimStep::At::end) return &row.metrics;
  if (wanted.at == ClaimStep::At::start) return row.trace.empty() ? nullptr : &row.trace.front().metrics;
  for (const TraceEntry& entry : row.trace)
    if (entry.step == wanted.step) return &entry.metrics;
  return nullptr;
}

/// The row of an arm whose cell is done; null with the reason in `problem`.
const ResultRow* find_done(const RowIndex& rows, const std::string& arm, const SweepPoint& point, int seed,
                           std::string& problem) {
  const ResultRow* const row = find_row(rows, arm, point, seed);
  if (row && row->state == "done") return row;
  problem = fmt::format("{} seed {} is {}", arm, seed, row ? row->state : "missing");
  return nullptr;
}

/// The side's metric in an arm at one seed; none with the reason in `problem`.
std::optional<double> metric_value(const ClaimSide& side, const std::string& arm, const RowIndex& rows,
                                   const SweepPoint& point, int seed, std::string& problem) {
  const ResultRow* const row = find_done(rows, arm, point, seed, problem);
  if (!row) return std::nullopt;
  const MetricValues* metrics = metrics_at(*row, side.step);
  const auto place = metrics ? metrics->find(side.metric) : MetricValues::const_iterator();
  if (!metrics || place == metrics->end() || !std::isfinite(place->second)) {
    problem = fmt::format("{} seed {} has no {}{}", arm, seed, side.metric, metrics ? "" : " at that step");
    return std::nullopt;
  }
  return place->second;
}

/// The distance of the curves of two arms at one seed; none with the reason in `problem`.
std::optional<double> distance_value(const ClaimSide& side, const RowIndex& rows, const SweepPoint& point,
                                     int seed, std::string& problem) {
  const ResultRow* const row = find_done(rows, side.arm, point, seed, problem);
  const ResultRow* const other = find_done(rows, side.distance_from, point, seed, problem);
  if (!row || !other) return std::nullopt;
  const std::optional<double> distance = curve_rmse(row->trace, other->trace, side.metric);
  if (distance && std::isfinite(*distance)) return distance;
  problem = fmt::format("{} and {} have no common curve of {}", side.arm, side.distance_from, side.metric);
  return std::nullopt;
}

/// The side's value at one seed; none with the reason in `problem`.
std::optional<double> side_value(const ClaimSide& side, const RowIndex& rows, const SweepPoint& point,
                                 int seed, std::string& problem) {
  if (side.value) return side.value;
  if (!side.distance_from.empty()) return distance_value(side, rows, point, seed, problem);
  std::optional<double> value = metric_value(side, side.arm, rows, point, seed, problem);
  if (!value || side.relative_to.empty()) return value;
  const std::optional<double> base = metric_value(side, side.relative_to, rows, point, seed, problem);
  if (!base) return base;
  if (*base == 0) {
    problem = fmt::format("{} seed {} has {} 0", side.relative_to, seed, side.metric);
    return std::nullopt;
  }
  return *value / *base;
}

Pairs collect_pairs(const PointedClaim& claim, const RowIndex& rows, const SweepPoint& left_point,
                    const SweepPoint& right_point) {
  std::set<int> seeds(rows.seeds(claim.left.arm).begin(), rows.seeds(claim.left.arm).end());
  seeds.insert(rows.seeds(claim.right.arm).begin(), rows.seeds(claim.right.arm).end());
  Pairs pairs;
  for (const int seed : seeds) {
    const std::optional<double> left = side_value(claim.left, rows, left_point, seed, pairs.problem);
    const std::optional<double> right = side_value(claim.right, rows, right_point, seed, pairs.problem);
    if (!left || !right) continue;
    pairs.left.push_back(*left);
    pairs.right.push_back(*right);
  }
  return pairs;
}

/// δ over the pairs: of logarithms, or raw.
std::vector<double> differences(const PointedClaim& claim, const Pairs& pairs, bool logarithmic) {
  std::vector<double> left = pairs.left, right = pairs.right;
  for (double& value : left) value *= claim.left.factor;
  for (double& value : right) value *= claim.right.factor;
  if (logarithmic)
    for (std::vector<double>* side : {&left, &right})
      for (double& value : *side) value = std::log(value);
  return paired_differences(left, right);
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

void judge(const PointedClaim& claim, const std::vector<double>& delta, std::size_t points,
           ClaimPoint& point) {
  const Interval range = claimed_range(claim, point);
  const Interval interval = *point.difference->interval;
  const Interval wide = *mean_estimate(delta, 1 - (1 - kLevel) / static_cast<double>(points)).interval;
  if (wide.high < range.low || wide.low > range.high)
    point.verdict = Verdict::refuted;
  else if (interval.low > range.low && interval.high < range.high)
    point.verdict = Verdict::reproduced;
}

MeanEstimate side_estimate(const ClaimSide& side, const std::vector<double>& values) {
  MeanEstimate estimate = mean_estimate(values);
  if (side.value) estimate.interval.reset();
  return estimate;
}

ClaimPoint evaluate_point(const PointedClaim& claim, std::size_t index, const Pairs& pairs,
                          bool logarithmic) {
  ClaimPoint point;
  point.left_at = claim.points[index].first;
  point.right_at = claim.points[index].second;
  point.logarithmic = logarithmic;
  point.pairs = static_cast<int>(pairs.left.size());
  point.note = pairs.problem;
  if (point.pairs == 0) {
    if (point.note.empty()) point.note = "no cells";
    return point;
  }
  const std::vector<double> delta = differences(claim, pairs, logarithmic);
  point.left = side_estimate(claim.left, pairs.left);
  point.right = side_estimate(claim.right, pairs.right);
  point.left_factor = claim.left.factor;
  point.right_factor = claim.right.factor;
  point.difference = mean_estimate(delta, kLevel);
  if (point.pairs < kMinimumPairs)
    point.note += fmt::format("{}{} of the {} pairs that a verdict needs", point.note.empty() ? "" : "; ",
                              point.pairs, kMinimumPairs);
  else if (pairs.problem.empty())
    judge(claim, delta, claim.points.size(), point);
  return point;
}

bool all_positive(const PointedClaim& claim, const std::vector<Pairs>& points) {
  const auto positive = [](double value) { return value > 0; };
  return claim.left.factor > 0 && claim.right.factor > 0 &&
         std::all_of(points.begin(), points.end(), [&](const Pairs& pairs) {
           return std::all_of(pairs.left.begin(), pairs.left.end(), positive) &&
                  std::all_of(pairs.right.begin(), pairs.right.end(), positive);
         });
}

/// Judges the claim at its points.
void evaluate_pointed(const PointedClaim& claim, const RowIndex& rows,
                      const std::function<bool(const std::string&)>& is_positive, ClaimResult& result) {
  std::vector<Pairs> pairs;
  for (const auto& [left, right] : claim.points) pairs.push_back(collect_pairs(claim, rows, left, right));
  // The distance of equal curves is 0, whatever the metric.
  const auto declared_positive = [&](const ClaimSide& side) {
    return side.value || (side.distance_from.empty() && is_positive(side.metric));
  };
  const bool declared = declared_positive(claim.left) && declared_positive(claim.right);
  const bool logarithmic = declared && all_positive(claim, pairs);

  bool refuted = false, reproduced = !claim.points.empty();
  for (std::size_t i = 0; i < claim.points.size(); ++i) {
    ClaimPoint point = evaluate_point(claim, i, pairs[i], logarithmic);
    if (declared && !logarithmic)
      point.note += fmt::format("{}raw differences: a value is not above 0", point.note.empty() ? "" : "; ");
    refuted |= point.verdict == Verdict::refuted;
    reproduced &= point.verdict == Verdict::reproduced;
    result.points.push_back(std::move(point));
  }
  if (refuted)
    result.verdict = Verdict::refuted;
  else if (reproduced)
    result.verdict = Verdict::reproduced;
}

ClaimResult evaluate_claim(const Claim& claim, const RowIndex& rows,
                           const std::function<bool(const std::string&)>& is_positive,
                           const std::string& path) {
  ClaimResult result;
  result.id = claim.id;
  result.source = claim.source;
  result.reported = claim.reported;
  if (const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement)) {
    ClaimPoint point = evaluate_rate_claim(*rate, rows.table(), path);
    result.text = claim.text.value_or(rate_claim_text(*rate));
    result.verdict = point.verdict;
    result.points.push_back(std::move(point));
    return result;
  }
  const Comparison* const comparison = std::get_if<Comparison>(&claim.statement);
  const PointedClaim pointed = comparison ? find_points(*comparison, rows, path)
                                          : find_points(std::get<Trend>(claim.statement), rows, path);
  result.text = claim.text.value_or(pointed.text);
  evaluate_pointed(pointed, rows, is_positive, result);
  return result;
}

}  // namespace

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return "reproduced";
    case Verdict::refuted:
      return "refuted";
    case Verdict::inconclusive:
      break;
  }
  return "inconclusive";
}

std::vector<ClaimResult> evaluate_claims(const std::vector<Claim>& claims, const ResultTable& table,
                                         const std::function<bool(const std::string&)>& is_positive) {
  const RowIndex rows(table);
  std::vector<ClaimResult> results;
  for (const Claim& claim : claims) {
    results.push_back(evaluate_claim(claim, rows, is_positive, fmt::format("claims[{}]", results.size())));
  }
  return results;
}

}  // namespace moelab
