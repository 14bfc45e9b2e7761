#pragma once

/// Intervals of means, medians and frequencies over seeds, p values, and the bands of figures.

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace moelab {

struct Interval {
  double low = 0;
  double high = 0;
};

struct MeanEstimate {
  double mean = 0;
  int count = 0;
  std::optional<Interval> interval;  ///< none for a single value
};

/// The mean m of n ≥ 1 values with the interval m ± t_{n−1}((1 + level)/2) · s/√n, s the sample standard
/// deviation (ddof 1), exact for normal values. Throws InvalidOption without values.
MeanEstimate mean_estimate(std::span<const double> values, double level = 0.95);

/// s² (ddof 1) of two values or more.
double variance_of(std::span<const double> values, double mean);

/// The value that Student's t with these degrees of freedom exceeds with the probability `tail`.
double student_quantile(double degrees, double tail);

/// The interval of a mean m of n ≥ 2 normal values with sample variance s² (ddof 1):
/// m ± t_{n−1}((1 + level)/2) · s/√n.
Interval student_interval(double mean, double variance, int count, double level = 0.95);

/// The interval of Clopper and Pearson (1934) for a probability from `hits` of `trials` ≥ 1: the
/// probabilities that neither tail of level (1 − level)/2 rejects. Throws InvalidOption unless 0 ≤ hits ≤
/// trials.
Interval binomial_interval(int hits, int trials, double level = 0.95);

/// left_i − right_i. Throws InvalidOption when the lengths differ.
std::vector<double> paired_differences(std::span<const double> left, std::span<const double> right);

// Confidence sequences: intervals that hold at all numbers of values at once. You may look after each value
// and stop at any time. The probability that an interval of level 1 − α ever misses the truth is at most α.
//
// The mean of normal values: a mixture over the effect δ = (μ − μ0)/σ ~ N(0, 1), with σ under its right Haar
// measure. For n values of mean m and deviation s (ddof 1), let t = √n (m − μ0)/s and g = 1 + n. The ratio of
// the likelihoods of t,
//   B = g^(−1/2) [(1 + t²/(n − 1)) / (1 + t²/(g (n − 1)))]^(n/2),
// is a martingale under μ0, so P(B ≥ 1/α at some n) ≤ α (Ville). The interval holds every μ0 with B < 1/α.
// See Wang, Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
// variance", Sequential Analysis 44, 2025 (Gaussian mixture). The martingale goes back to Lai 1976. It is
// exact only for normal values.
//
// The median of values of any continuous law: signs of x_i − θ are fair coins. With k of n values above θ,
//   B = 2^n Beta(k + 1/2, n − k + 1/2) / Beta(1/2, 1/2)
// is a martingale (Robbins 1970; for quantiles Howard, Ramdas, Bernoulli 28, 2022). The interval holds every
// θ with B < 1/α. It lies between two of the sorted values.

/// Verdicts wait for this many pairs, although the sequences are valid from any number on.
constexpr int kLeastSequentialPairs = 6;

/// The t-mixture interval of a mean of n ≥ 2 values with sample variance s² (ddof 1). Its ends are infinite
/// while no μ0 is excluded. Equal values give a point.
Interval t_mixture_interval(double mean, double variance, int count, double level = 0.95);

/// min(1, 1/B) for μ0. It is at most 1 − level if and only if the interval excludes μ0. Valid at all n at
/// once.
double t_mixture_p_value(double mean, double variance, int count, double mu0);

/// The interval of the median. Its ends are infinite while no value is excluded.
Interval sign_sequence_interval(std::span<const double> values, double level = 0.95);

/// min(1, 1/B) of fair coins, k of n above.
double sign_sequence_p_value(int above, int decidable);

// P values for and against a range, and the number of values that would decide

/// Two p values, each twice the one-sided one. Each is at most 1 − level if and only if the interval at that
/// level lies inside (or outside) the range.
struct RangePValues {
  double inside = 1;   ///< small if the mean lies inside
  double outside = 1;  ///< small if the mean lies outside
};

/// P values of the mean μ of n ≥ 2 normal values with mean m and deviation s (ddof 1), against a range (a, b)
/// with finite or infinite ends. With T of Student's distribution with n − 1 degrees and t(x) = (m − x) √n /
/// s,
///   inside  = 2 max(P(T ≤ t(b)), P(T ≥ t(a))), the two one-sided tests of Schuirmann (1987);
///   outside = 2 min(P(T ≥ t(b)), P(T ≤ t(a))),
/// at most 1. With a = −∞ and b = 0 the smaller one is the p value of the paired t test. Equal values have p
/// = 0 on their side.
RangePValues range_p_values(std::span<const double> values, const Interval& range);

/// min(1, 2 P(X ≥ k)) for X ~ Binomial(n, 1/2). It is small if k of n decidable pairs are too many for equal
/// chances. With the larger of the two counts it is the two-sided p value of the sign test.
double sign_p_value(int count, int decidable);

/// With fewer decidable pairs the p value of the sign test cannot fall below 0.05: 2 · 2⁻⁵ = 0.0625.
constexpr int kLeastDecidablePairs = 6;

/// The least n in [from, kMostSeeds] for which `decides` holds, or none. `decides` must also hold for all
/// larger n.
std::optional<int> least_count(int from, const std::function<bool(int)>& decides);

constexpr int kMostSeeds = 1'000'000;

// P values corrected for the number of tests, in the given order

/// Holm (1979): with p_(1) ≤ … ≤ p_(m), p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)). If tests with p̃ ≤ α
/// count as decided, the probability of any error is at most α for any dependence.
std::vector<double> holm(std::span<const double> p_values);

/// Benjamini and Hochberg (1995): p̃_(i) = min_{j ≥ i} min(1, m p_(j) / j). If tests with p̃ ≤ q count as
/// decided, the expected share of errors among them is at most q for independent or positively dependent
/// tests.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

// Values that may be right-censored: an interval holds the value, and is a single point for a known value

inline bool is_exact(const Interval& observation) {
  return observation.low == observation.high;
}

/// Counts of pairs of observations. The order of two censored values is undecided.
struct SignCounts {
  int below = 0, above = 0;  ///< pairs whose left side is known to be below, or above, the right one
  int ties = 0, undecided = 0;

  void add(const Interval& left, const Interval& right);
};

/// The median of at least one observation.
struct Median {
  double value = 0;
  bool is_open = false;  ///< the median is above `value`, by how much is not known
  int censored = 0;      ///< right-censored observations
  int count = 0;
};

/// The median of the lower ends. It is the exact median if the upper ends have the same median.
Median median_of(std::span<const Interval> observations);

// What a figure shows at one x: the mean or median over seeds, its interval, and the seeds

struct BandPoint {
  double x = 0;
  std::optional<double> mean = {};  ///< none if no seed has a value
  /// 95 % interval; none with too few values. `high` may be infinite, see median_point().
  std::optional<double> low = {}, high = {};
  /// By seed index. None if the cell diverged, failed or is missing, or the value is censored.
  std::vector<std::optional<double>> seeds = {};
  bool is_open = false;  ///< the median is above `mean`, by how much is not known
};

// `is_sequential` takes the intervals of confidence sequences, as for a run whose claims decided the number
// of seeds.

/// The mean over finite values with its 95 % interval: Student-t, or the t-mixture, whose ends may be
/// infinite. For a `positive` quantity whose values are all above 0, the geometric mean with the interval of
/// the mean logarithm, as in claims. So it is never below 0.
MeanEstimate seed_estimate(const std::vector<double>& values, bool positive, bool is_sequential);

/// seed_estimate over the seeds with a finite value. No interval if its ends are infinite.
BandPoint band_point(double x, std::vector<std::optional<double>> seeds, bool positive, bool is_sequential);

/// The median over seeds, with an interval of at least 95 % (none below 6 seeds). Values may be
/// right-censored. The interval goes from the k-th least to the k-th largest value, with the largest k such
/// that 2 P(Bin(n, 1/2) < k) ≤ 0.05, or it is the interval of the sign sequence. Its lower end is one of the
/// observations' lower ends, and its upper end one of their upper ends. So `high` is infinite if a censored
/// value bounds the median from above. There is no interval if its lower end is infinite. `mean` is the
/// median of the lower ends.
BandPoint median_point(double x, const std::vector<std::optional<Interval>>& seeds, bool is_sequential);

}  // namespace moelab
