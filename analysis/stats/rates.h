#pragma once

/// Rates of convergence: how an error falls with the number of samples.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "sim/base/arrays.h"

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

// Weighted regressions of ln e on functions of n.

struct Line {
  double slope = 0, intercept = 0;
};

/// The weighted regression of y on x.
Line regress(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights);

/// 1 / v(n), see estimate_rate(); all equal where no variance is known, or all are zero.
std::vector<double> size_weights(const RateData& data);

// Which law an error follows, as far as the sizes at hand can tell.

/// A law e(n) = C g(n) of the theory.
struct LawScore {
  std::string name;  ///< "n^-1/2", "n^-1/4" or "1/log^τ n"
  double tau = 0;    ///< of the last, fitted to all sizes
  /// Mean over repetitions of the log-likelihood of held-out sizes less that of the best law, at most 0, with
  /// its 95 % interval; none for the best law itself.
  std::optional<MeanEstimate> against_best;
  bool excluded = false;  ///< the interval lies below 0
};

struct LawComparison {
  std::vector<LawScore> laws;  ///< all three; empty with fewer than four sizes n > 1 or two repetitions
  std::string law;             ///< the one that is not excluded, or "not told apart"
  /// The least further size n at which the laws that are not excluded would differ by four standard errors,
  /// as many repetitions and as much noise given; none where one law is left or 10^15 would not do.
  std::optional<double> told_apart_at;
};

/// Each size is held out in turn. A law's constant C, and τ ≥ 0 of the logarithmic one, are fitted to the
/// means of ln e at the other sizes with weights 1 / v(n) as in estimate_rate(); the held-out errors have the
/// log-likelihood −(ln e − ln Ĉ ĝ(n))² / 2 v(n) up to what all laws share. No law is preferred for being
/// freer: what it fits is not what it is judged by.
LawComparison compare_laws(const RateData& data);

// Exponents of a product of powers.

/// y = C Π_j x_j^{a_j}.
struct PowerLaw {
  double constant = 0;              ///< C
  std::vector<double> exponents;    ///< a (m)
  std::vector<Interval> intervals;  ///< of each exponent, 95 %
  double deviation = 0;             ///< s below: what is left in ln y
};

/// y = C x with one C for all.
struct Proportion {
  double constant = 0;   ///< C
  double deviation = 0;  ///< standard deviation of ln(y ÷ x), ddof 1
};

/// ln C = mean of ln(y ÷ x), (n). None where n < 2. Throws InvalidOption for values that are not positive.
std::optional<Proportion> fit_proportion(const Vector& x, const Vector& y);

/// Least squares of ln y (n) on ln x (n, m) and a constant. The interval of a_j is
/// â_j ± t_{n−m−1}(.975) · s √((XᵀX)⁻¹)_jj with s² the squared residuals ÷ (n − m − 1): exact for independent
/// normal errors of one size in the logarithms, which what the law misses counts as. None where n < m + 2, or
/// where the columns of X, a constant among them, are dependent. Throws InvalidOption for values that are not
/// positive.
std::optional<PowerLaw> fit_power_law(const Matrix& x, const Vector& y);

}  // namespace moelab
