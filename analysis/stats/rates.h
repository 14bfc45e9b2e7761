#pragma once

/// Rates of convergence: how an error falls with the number of samples.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"

namespace moelab {

/// How the errors of repetitions are averaged: their logarithms (a slope for each repetition), or their
/// squares (one slope, of the root of their mean square). The second is what the theory of over-specified
/// mixtures bounds: in a share of the repetitions that does not vanish the components that share one fall
/// together, with errors of another order, and the mean logarithm has neither rate.
enum class RateAverage { logarithms, squares };

/// What is regressed: a metric of one arm along a swept path.
struct RateQuery {
  std::string arm;
  std::string metric;
  std::string along;                              ///< the swept path whose values are n
  SweepPoint where = {};                          ///< values of the other swept paths
  std::optional<Interval> window = std::nullopt;  ///< n within [low, high]; all without
  RateAverage average = RateAverage::logarithms;

  bool reads(const std::optional<double>& n) const {
    return n && (!window || (*n >= window->low && *n <= window->high));
  }
};

/// errors[r][s] of repetition r at n = samples[s] (ascending); none where a cell is not done or lacks the
/// metric.
struct RateData {
  std::vector<double> samples;
  std::vector<std::vector<std::optional<double>>> errors;
  RateAverage average = RateAverage::logarithms;
};

RateData rate_data(const ResultTable& table, const RateQuery& query);

/// Fits with one slope a repetition. Sizes within a repetition may share data (the first n samples of a
/// larger training set are the smaller set, unless data.independent), so its errors may be dependent;
/// repetitions are not. Hence the interval is Student's over the repetitions' slopes. Laws are told apart by
/// rate_laws.h.
///
/// In each repetition ln e(n) is regressed on ln n (power law e = C n^ρ, slope ρ), with weights 1 / v(n),
/// v(n) = (s²(n) + s̄²) / 2: s²(n) the variance of ln e(n) over repetitions, s̄² its mean over n, towards which
/// few repetitions are drawn. Of squares: ln √(mean of e²(n)) on ln n, weighted alike; a repetition has the
/// jackknife's pseudo-value R ρ − (R − 1) ρ₋ᵣ, ρ₋ᵣ the slope without it (Efron and Tibshirani 1993, ch. 11).
struct RateEstimate {
  std::vector<std::optional<double>> slopes;  ///< ρ by repetition; none with fewer than three sizes
  std::optional<MeanEstimate> slope;          ///< mean of ρ and its 95 % interval
  std::optional<double> median_slope;         ///< of the medians of e(n) over repetitions
  double intercept = 0;                       ///< mean of ln C of the power law
  int missing = 0;                            ///< errors that are none
  int left_out = 0;                           ///< repetitions without a slope

  /// Every repetition has an error at every size; else slopes are those of what is left, and decide nothing.
  bool is_complete() const { return missing == 0 && left_out == 0; }
};

RateEstimate estimate_rate(const RateData& data);

/// Where a slope can be told to lie at finite n.
enum class RateVerdict { compatible, excluded, inconclusive };
std::string to_string(RateVerdict verdict);

/// `compatible` when the interval lies within [low, high], `excluded` when wholly outside, else
/// `inconclusive`; so without an interval.
RateVerdict judge_slope(const std::optional<MeanEstimate>& slope, const Interval& range);
/// The same of an estimate's slope; `inconclusive` where errors are missing.
RateVerdict judge_rate(const RateEstimate& estimate, const Interval& range);

/// Half of the width of the range of slopes that stand for a rate: less than half of the way from −1/2 to
/// −1/4.
constexpr double kRateTolerance = 0.1;

/// A named range of slopes.
struct RateStatement {
  std::string name;
  Interval range;
};

/// n^-1/2 and n^-1/4 (each ± kRateTolerance), and slower than any of these: above −1/4 + kRateTolerance. A
/// logarithmic law cannot be confirmed at finite n: it is one of the slower ones, or a steeper one locally.
const std::vector<RateStatement>& rate_statements();

}  // namespace moelab
