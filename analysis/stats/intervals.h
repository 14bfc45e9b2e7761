#pragma once

/// Means over seeds with Student-t intervals, frequencies with binomial ones.

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

}  // namespace moelab
