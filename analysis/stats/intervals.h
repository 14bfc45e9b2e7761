#pragma once

/// Means over seeds with Student-t intervals, frequencies with binomial ones.

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

/// The interval of a mean m of n ≥ 2 normal values with sample variance s² (ddof 1):
/// m ± t_{n−1}((1 + level)/2) · s/√n.
Interval student_interval(double mean, double variance, int count, double level = 0.95);

/// The interval of Clopper and Pearson (1934) for the probability of which `hits` of `trials` ≥ 1 were met:
/// the probabilities that neither tail of level (1 − level)/2 refutes. Throws InvalidOption unless 0 ≤ hits ≤
/// trials.
Interval binomial_interval(int hits, int trials, double level = 0.95);

/// left_i − right_i. Throws InvalidOption when the lengths differ.
std::vector<double> paired_differences(std::span<const double> left, std::span<const double> right);

// Confidence sequences: intervals that hold at every number of values at once, so that one may look after
// each and stop when one likes. An interval of level 1 − α misses the truth at any n with probability α at
// most over the whole sequence.
//
// The mean of normal values: a mixture over the effect δ = (μ − μ0)/σ ~ N(0, 1), σ under its right Haar
// measure. With n values of mean m and deviation s (ddof 1), t = √n (m − μ0)/s and g = 1 + n, the ratio of
// the likelihoods of t,
//   B = g^(−1/2) [(1 + t²/(n − 1)) / (1 + t²/(g (n − 1)))]^(n/2),
// is a martingale under μ0, so that P(B ≥ 1/α at some n) ≤ α (Ville); the interval holds every μ0 with B <
// 1/α. Wang, Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
// variance", Sequential Analysis 44, 2025 (its Gaussian mixture); the martingale goes back to Lai 1976. It
// is exact for normal values alone.
//
// The median of values of any continuous law: signs of x_i − θ are fair coins, and with k of n above θ
//   B = 2^n Beta(k + 1/2, n − k + 1/2) / Beta(1/2, 1/2)
// is a martingale (Robbins 1970; for quantiles Howard, Ramdas, Bernoulli 28, 2022). The interval holds every
// θ with B < 1/α: it lies between two of the sorted values.

/// Verdicts wait for as many pairs: the sequences may be looked at from any number on.
constexpr int kLeastSequentialPairs = 6;

/// The t-mixture interval of a mean of n ≥ 2 values with sample variance s² (ddof 1); its ends are infinite
/// where no μ0 is excluded yet. Equal values give their own point.
Interval t_mixture_interval(double mean, double variance, int count, double level = 0.95);

/// min(1, 1/B) for μ0: at most 1 − level exactly where the interval leaves μ0 out. Valid at every n at once.
double t_mixture_p_value(double mean, double variance, int count, double mu0);

/// The interval of the median; its ends are infinite where no value is excluded yet.
Interval sign_sequence_interval(std::span<const double> values, double level = 0.95);

/// min(1, 1/B) of fair coins, k of n above.
double sign_sequence_p_value(int above, int decidable);

// How strongly paired values speak for or against a range, and how many of them would decide.

/// Two p values, each twice the one-sided one, so that one is at most 1 − level exactly where the interval at
/// that level lies inside, or outside, of the range.
struct RangePValues {
  double inside = 1;   ///< small where the values say that it lies inside
  double outside = 1;  ///< small where they say that it lies outside
};

/// Of the mean μ of n ≥ 2 normal values with mean m, deviation s (ddof 1), against a range (a, b), ends
/// infinite or not. With T of Student's distribution with n − 1 degrees and t(x) = (m − x) √n / s,
///   inside  = 2 max(P(T ≤ t(b)), P(T ≥ t(a))), the two one-sided tests of Schuirmann (1987);
///   outside = 2 min(P(T ≥ t(b)), P(T ≤ t(a))),
/// at most 1. With a = −∞ and b = 0 the smaller of the two is the p value of the paired t test. Equal values
/// have p = 0 on their side.
RangePValues range_p_values(std::span<const double> values, const Interval& range);

/// min(1, 2 P(X ≥ k)) of X ~ Binomial(n, 1/2): small where k of n decidable pairs are too many for equal
/// chances. The sign test's two-sided p value with k the larger of the two counts.
double sign_p_value(int count, int decidable);

/// Fewer decidable pairs cannot bring the sign test's p below .05: 2 · 2⁻⁵ = .0625.
constexpr int kLeastDecidablePairs = 6;

/// The least n in [from, kMostSeeds] of which `decides` holds, given that it holds of all greater ones, too;
/// none where there is none.
std::optional<int> least_count(int from, const std::function<bool(int)>& decides);

constexpr int kMostSeeds = 1'000'000;

// P values corrected for the number of tests. Both functions keep the order of what they are given.

/// Holm (1979): with p_(1) ≤ … ≤ p_(m), p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)). Calling what has
/// p̃ ≤ α decided, the chance of a single error is at most α, whatever the dependence.
std::vector<double> holm(std::span<const double> p_values);

/// Benjamini and Hochberg (1995): p̃_(i) = min_{j ≥ i} min(1, m p_(j) / j). Calling what has p̃ ≤ q decided,
/// the expected share of errors among the decided is at most q where tests are independent or positively
/// dependent.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

// What a figure shows at one x: what stands for the seeds, its interval, and the seeds themselves.

struct BandPoint {
  double x = 0;
  std::optional<double> mean = {};            ///< none when no seed has a value
  std::optional<double> low = {}, high = {};  ///< 95 % interval; none with too few values
  /// By seed index; none where the cell diverged, failed or is missing, or the value is censored.
  std::vector<std::optional<double>> seeds = {};
  bool is_open = false;  ///< the median is above `mean`, by how much is not known
};

// Of a run that was decided, whose seeds are as many as its claims asked for, intervals are those of
// confidence sequences (sequences.h): `is_sequential`.

/// The mean over finite values with its 95 % Student-t interval, or that of the t-mixture, whose ends may be
/// infinite. Of a `positive` quantity (and where all values are above 0) the geometric mean with the interval
/// of the mean logarithm, as claims compare it: so it is never below 0.
MeanEstimate seed_estimate(const std::vector<double>& values, bool positive, bool is_sequential);

/// seed_estimate over the seeds that have a finite value; no interval where its ends are infinite.
BandPoint band_point(double x, std::vector<std::optional<double>> seeds, bool positive, bool is_sequential);

/// The median over seeds, some of them right-censored (observation.h), and the interval between order
/// statistics that holds the median with 95 % or more (none below 6 seeds): from the k-th least to the k-th
/// largest value, the largest k with 2 P(Bin(n, 1/2) < k) ≤ .05; or that of the sign sequence. What is
/// censored stands at its lower end.
BandPoint median_point(double x, const std::vector<std::optional<Interval>>& seeds, bool is_sequential);

}  // namespace moelab
