#pragma once

/// Rates of convergence: how an error falls with the number of samples.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "sim/base/arrays.h"

namespace moelab {

/// How the errors of repetitions are averaged. `logarithms`: a slope for each repetition. `squares`: one
/// slope, for the root of the mean square, which the theory of over-specified mixtures bounds. There the
/// components that share a true component coincide in a share of the repetitions that does not vanish. These
/// repetitions have errors of another order, and the mean logarithm has neither rate.
enum class RateAverage { logarithms, squares };
/// The field "average" of claims on rates and of figures of them.
void bind_average(Fields& fields, RateAverage& average);

/// The data of a regression: a metric of one arm along a swept path.
struct RateQuery {
  std::string arm;
  std::string metric;
  std::string along;                              ///< the swept path whose values are n
  SweepPoint where = {};                          ///< values of the other swept paths
  std::optional<Interval> window = std::nullopt;  ///< n within [low, high]; default all
  RateAverage average = RateAverage::logarithms;

  bool reads(const std::optional<double>& n) const {
    return n && (!window || (*n >= window->low && *n <= window->high));
  }
};

/// errors[r][s] of repetition r at n = samples[s] (ascending). None if a cell is not done or lacks the
/// metric.
struct RateData {
  std::vector<double> samples;
  std::vector<std::vector<std::optional<double>>> errors;
  RateAverage average = RateAverage::logarithms;
};

RateData rate_data(const ResultTable& table, const RateQuery& query);

/// Fits with one slope per repetition. Sizes within a repetition may share data (without data.independent a
/// smaller training set is the beginning of a larger one). So the errors of one repetition may be dependent.
/// Repetitions are independent, and the interval is Student's over their slopes.
///
/// In each repetition, least squares of ln e(n) on ln n give the slope ρ of the power law e = C n^ρ. All
/// sizes have the same weight: weights from the same errors would make the interval too short.
///
/// For `squares`, ρ is the slope of ln √(mean of e²(n)). A repetition then has the pseudo-value
/// R ρ − (R − 1) ρ₋ᵣ of the jackknife, with ρ₋ᵣ the slope without it (Efron and Tibshirani 1993, ch. 11). The
/// pseudo-values are shifted so that their mean is ρ. tests/calibration measures the coverage of both.
struct RateEstimate {
  std::vector<std::optional<double>> slopes;  ///< ρ by repetition; none for fewer than three sizes
  std::optional<MeanEstimate> slope;          ///< mean of ρ and its 95 % interval
  std::optional<double> median_slope;         ///< of the medians of e(n) over repetitions
  double intercept = 0;                       ///< mean of ln C of the power law
  int missing = 0;                            ///< missing errors
  int left_out = 0;                           ///< repetitions without a slope

  /// Whether every repetition has an error at every size. Otherwise the slopes use the remaining errors and
  /// decide nothing.
  bool is_complete() const { return missing == 0 && left_out == 0; }
};

RateEstimate estimate_rate(const RateData& data);

/// Whether a range can hold a slope, as far as finite n can show.
enum class RateVerdict { compatible, excluded, inconclusive };
std::string to_string(RateVerdict verdict);

/// `compatible` if the interval lies within [low, high], `excluded` if it lies outside, otherwise
/// `inconclusive`. Also `inconclusive` without an interval.
RateVerdict judge_slope(const std::optional<MeanEstimate>& slope, const Interval& range);
/// The same for an estimate's slope, and `inconclusive` if errors are missing.
RateVerdict judge_rate(const RateEstimate& estimate, const Interval& range);

/// Half of the width of a rate's range of slopes: less than half of the distance between −1/2 and −1/4.
constexpr double kRateTolerance = 0.1;

/// A named range of slopes.
struct RateStatement {
  std::string name;
  Interval range;
};

/// n^-1/2 and n^-1/4 (each ± kRateTolerance), and slower than both: above −1/4 + kRateTolerance. Finite n
/// cannot confirm a logarithmic law. It looks like a slower rate, or locally like a steeper one.
const std::vector<RateStatement>& rate_statements();

// Weighted regressions of ln e on functions of n

struct Line {
  double slope = 0, intercept = 0;
};

/// The weighted regression of y on x.
Line regress(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights);

/// 1 / v(n) at each size, with v(n) = (s²(n) + m) / 2. s²(n) is the variance of ln e(n) over repetitions
/// (ddof 1), and m is its mean over the sizes where it is known. At the other sizes v(n) = m. All weights are
/// equal if no variance is known or all are zero.
std::vector<double> size_weights(const RateData& data);

// Comparison of laws, as far as the given sizes allow

/// A law e(n) = C g(n) of the theory.
struct LawScore {
  std::string name;  ///< "n^-1/2", "n^-1/4" or "1/log^τ n"
  double tau = 0;    ///< of the logarithmic law, fitted to all sizes
  /// Mean over repetitions of the log-likelihood of held-out sizes relative to the best law, at most 0, with
  /// its 95 % interval. None for the best law.
  std::optional<MeanEstimate> against_best;
  bool excluded = false;  ///< the interval lies below 0
};

struct LawComparison {
  std::vector<LawScore> laws;  ///< all three; empty with fewer than four sizes n > 1 or two repetitions
  std::string law;             ///< the only law that is not excluded, or "not told apart"
  /// The least larger size n at which the remaining laws would differ by four standard errors, with the same
  /// repetitions and noise. None if one law is left or 10^15 is too small.
  std::optional<double> told_apart_at;
};

/// Holds out each size in turn. A law's constant C, and τ ≥ 0 of the logarithmic law, are fitted to the means
/// of ln e at the other sizes with the weights 1 / v(n) of size_weights(). The held-out errors have the
/// log-likelihood −(ln e − ln Ĉ ĝ(n))² / 2 v(n) up to a common constant. Held-out errors give no advantage to
/// a law with more parameters.
LawComparison compare_laws(const RateData& data);

// Power laws in several variables

/// y = C Π_j x_j^{a_j}.
struct PowerLaw {
  double constant = 0;              ///< C
  std::vector<double> exponents;    ///< a (m)
  std::vector<Interval> intervals;  ///< of each exponent, 95 %
  double deviation = 0;             ///< s below, of the residuals of ln y
};

/// y = C x with one C for all.
struct Proportion {
  double constant = 0;   ///< C
  double deviation = 0;  ///< standard deviation of ln(y ÷ x), ddof 1
};

/// ln C = mean of ln(y ÷ x), (n). None for n < 2. Throws InvalidOption for values that are not positive.
std::optional<Proportion> fit_proportion(const Vector& x, const Vector& y);

/// Least squares of ln y (n) on ln x (n, m) and a constant. The interval of a_j is
/// â_j ± t_{n−m−1}(0.975) · s √((XᵀX)⁻¹)_jj with s² the squared residuals ÷ (n − m − 1). It is exact for
/// independent normal errors of one size in the logarithms, and treats deviations from the law as such
/// errors. None for n < m + 2, or if the columns of X, including the constant, are dependent. Throws
/// InvalidOption for values that are not positive.
std::optional<PowerLaw> fit_power_law(const Matrix& x, const Vector& y);

}  // namespace moelab
