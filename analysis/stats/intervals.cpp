#include "analysis/stats/intervals.h"

#include <fmt/core.h>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {

MeanEstimate mean_estimate(std::span<const double> values, double level) {
  if (values.empty()) throw InvalidOption("values", "empty; a mean needs at least one value");
  MeanEstimate estimate;
  estimate.count = static_cast<int>(values.size());
  const double count = static_cast<double>(values.size());
  // Measured from the first value, equal values give exactly zero spread.
  const double origin = values.front();
  double shift = 0;
  for (const double value : values) shift += (value - origin) / count;
  estimate.mean = origin + shift;
  if (values.size() < 2) return estimate;
  double squares = 0;
  for (const double value : values) squares += (value - origin - shift) * (value - origin - shift);
  estimate.interval = student_interval(estimate.mean, squares / (count - 1), estimate.count, level);
  return estimate;
}

double variance_of(std::span<const double> values, double mean) {
  double variance = 0;
  for (const double value : values)
    variance += (value - mean) * (value - mean) / (static_cast<double>(values.size()) - 1);
  return variance;
}

Interval student_interval(double mean, double variance, int count, double level) {
  const boost::math::students_t_distribution<double> student(count - 1);
  const double quantile = boost::math::quantile(boost::math::complement(student, (1 - level) / 2));
  const double half_width = quantile * std::sqrt(variance / count);
  return {mean - half_width, mean + half_width};
}

Interval binomial_interval(int hits, int trials, double level) {
  if (trials < 1 || hits < 0 || hits > trials)
    throw InvalidOption("hits", fmt::format("got {} of {} trials", hits, trials));
  const double tail = (1 - level) / 2;
  using Binomial = boost::math::binomial_distribution<double>;
  return {Binomial::find_lower_bound_on_p(trials, hits, tail),
          Binomial::find_upper_bound_on_p(trials, hits, tail)};
}

std::vector<double> paired_differences(std::span<const double> left, std::span<const double> right) {
  if (left.size() != right.size())
    throw InvalidOption("values",
                        fmt::format("{} values on the left, {} on the right", left.size(), right.size()));
  std::vector<double> differences(left.size());
  for (std::size_t i = 0; i < left.size(); ++i) differences[i] = left[i] - right[i];
  return differences;
}

}  // namespace moelab
