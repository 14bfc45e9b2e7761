#include "analysis/stats/intervals.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "sim/base/error.h"

namespace moelab {
namespace {

// Boost computes a constant of these laws when the program starts. It overflows where long doubles have only
// 64 bits, as under valgrind, and must not end the program there.
using Policy =
    boost::math::policies::policy<boost::math::policies::overflow_error<boost::math::policies::ignore_error>>;
using Student = boost::math::students_t_distribution<double, Policy>;
using Binomial = boost::math::binomial_distribution<double, Policy>;

}  // namespace

MeanEstimate mean_estimate(std::span<const double> values, double level) {
  if (values.empty()) throw InvalidOption("values", "empty; a mean needs at least one value");
  MeanEstimate estimate;
  estimate.count = static_cast<int>(values.size());
  const double count = static_cast<double>(values.size());
  // Relative to the first value, equal values have exactly zero spread.
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

double student_quantile(double degrees, double tail) {
  return boost::math::quantile(boost::math::complement(Student(degrees), tail));
}

Interval student_interval(double mean, double variance, int count, double level) {
  const double half_width = student_quantile(count - 1, (1 - level) / 2) * std::sqrt(variance / count);
  return {mean - half_width, mean + half_width};
}

Interval binomial_interval(int hits, int trials, double level) {
  if (trials < 1 || hits < 0 || hits > trials)
    throw InvalidOption("hits", fmt::format("got {} of {} trials", hits, trials));
  const double tail = (1 - level) / 2;
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

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// ln B of the signs.
double log_sign_ratio(int above, int decidable) {
  const double below = decidable - above;
  return decidable * std::numbers::ln2 + std::lgamma(above + 0.5) + std::lgamma(below + 0.5) -
         std::lgamma(decidable + 1.0) - std::log(std::numbers::pi);
}

std::vector<std::size_t> ascending_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t left, std::size_t right) { return values[left] < values[right]; });
  return order;
}

double median_of_values(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  // Equal ends give themselves: their mean may be NaN for infinities and rounded for large values.
  if (values.size() % 2 == 1 || values[half - 1] == values[half]) return values[half];
  return (values[half - 1] + values[half]) / 2;
}

/// The finite values of the seeds. Deletes other values from `seeds`.
std::vector<double> finite_values(std::vector<std::optional<double>>& seeds) {
  std::vector<double> values;
  for (std::optional<double>& seed : seeds) {
    if (seed && !std::isfinite(*seed)) seed.reset();
    if (seed) values.push_back(*seed);
  }
  return values;
}

/// The largest k with 2 P(Bin(n, 1/2) < k) ≤ 0.05, or 0.
std::size_t median_rank(std::size_t count) {
  const Binomial law(static_cast<double>(count), 0.5);
  std::size_t rank = 0;
  while (rank < count && 2 * boost::math::cdf(law, static_cast<double>(rank)) <= 0.05) ++rank;
  return rank;
}

/// The interval of the median of known values. Its ends are infinite with too few values.
Interval median_interval(std::vector<double> values, bool is_sequential) {
  if (is_sequential) return sign_sequence_interval(values);
  const std::size_t rank = median_rank(values.size());
  if (rank == 0) return {-kUnbounded, kUnbounded};
  std::sort(values.begin(), values.end());
  return {values[rank - 1], values[values.size() - rank]};
}

MeanEstimate raw_estimate(const std::vector<double>& values, bool is_sequential) {
  MeanEstimate estimate = mean_estimate(values);
  if (is_sequential && estimate.interval)
    estimate.interval = t_mixture_interval(estimate.mean, variance_of(values, estimate.mean), estimate.count);
  return estimate;
}

void set_interval(const std::optional<Interval>& interval, BandPoint& point) {
  if (!interval || !std::isfinite(interval->low) || !std::isfinite(interval->high)) return;
  point.low = interval->low;
  point.high = interval->high;
}

}  // namespace

Interval t_mixture_interval(double mean, double variance, int count, double level) {
  if (count < 2) throw InvalidOption("values", "a sequence of means needs at least two");
  if (variance == 0) return {mean, mean};
  const double n = count, g = 1 + n, alpha = 1 - level;
  // B < 1/α means (1 + r) / (1 + r/g) < K for r = t²/(n − 1).
  const double log_k = (std::log(g) - 2 * std::log(alpha)) / n;
  if (log_k >= std::log(g)) return {-kUnbounded, kUnbounded};
  const double k = std::exp(log_k);
  const double most = g * (k - 1) / (g - k);
  const double half_width = std::sqrt(variance / n * (n - 1) * most);
  return {mean - half_width, mean + half_width};
}

double t_mixture_p_value(double mean, double variance, int count, double mu0) {
  if (count < 2) throw InvalidOption("values", "a sequence of means needs at least two");
  if (variance == 0) return mean == mu0 ? 1 : 0;
  const double n = count, g = 1 + n;
  const double r = n * (mean - mu0) * (mean - mu0) / variance / (n - 1);
  const double log_ratio = -0.5 * std::log(g) + 0.5 * n * (std::log1p(r) - std::log1p(r / g));
  return std::min(1.0, std::exp(-log_ratio));
}

Interval sign_sequence_interval(std::span<const double> values, double level) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const int n = static_cast<int>(sorted.size());
  // For θ below the i-th of the sorted values (from 0), n − i values are above it.
  int excluded = 0;
  while (excluded < n && log_sign_ratio(n - excluded, n) >= -std::log(1 - level) && 2 * excluded < n)
    ++excluded;
  if (excluded == 0) return {-kUnbounded, kUnbounded};
  return {sorted[static_cast<std::size_t>(excluded - 1)], sorted[static_cast<std::size_t>(n - excluded)]};
}

double sign_sequence_p_value(int above, int decidable) {
  if (above < 0 || above > decidable) throw InvalidOption("above", "needs 0 to all of the decidable pairs");
  return std::min(1.0, std::exp(-log_sign_ratio(above, decidable)));
}

RangePValues range_p_values(std::span<const double> values, const Interval& range) {
  if (values.size() < 2) throw InvalidOption("values", "a p value needs at least two");
  const double count = static_cast<double>(values.size());
  const double mean = mean_estimate(values).mean;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  const Student student(count - 1);
  const auto below = [&](double edge) {  // P(T ≤ t(edge))
    if (std::isinf(edge)) return edge > 0 ? 0.0 : 1.0;
    if (error == 0) return mean < edge ? 0.0 : mean > edge ? 1.0 : 0.5;
    return boost::math::cdf(student, (mean - edge) / error);
  };
  const auto above = [&](double edge) {  // P(T ≥ t(edge)), exact in its tail
    if (std::isinf(edge)) return edge > 0 ? 1.0 : 0.0;
    if (error == 0) return mean > edge ? 0.0 : mean < edge ? 1.0 : 0.5;
    return boost::math::cdf(boost::math::complement(student, (mean - edge) / error));
  };
  return {std::min(1.0, 2 * std::max(below(range.high), above(range.low))),
          std::min(1.0, 2 * std::min(above(range.high), below(range.low)))};
}

double sign_p_value(int count, int decidable) {
  if (count < 0 || count > decidable) throw InvalidOption("count", "needs 0 to all of the decidable pairs");
  if (count == 0) return 1;
  const Binomial fair(decidable, 0.5);
  return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(fair, count - 1)));
}

std::optional<int> least_count(int from, const std::function<bool(int)>& decides) {
  int low = from, high = from;
  while (!decides(high)) {
    if (high == kMostSeeds) return std::nullopt;
    low = high + 1;
    high = std::min(kMostSeeds, 2 * high);
  }
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (decides(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

std::vector<double> holm(std::span<const double> p_values) {
  const std::vector<std::size_t> order = ascending_order(p_values);
  std::vector<double> corrected(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(order.size() - i) * p_values[order[i]]);
    corrected[order[i]] = std::min(1.0, largest);
  }
  return corrected;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  const std::vector<std::size_t> order = ascending_order(p_values);
  std::vector<double> corrected(p_values.size());
  double least = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    least =
        std::min(least, static_cast<double>(order.size()) * p_values[order[i]] / static_cast<double>(i + 1));
    corrected[order[i]] = least;
  }
  return corrected;
}

void SignCounts::add(const Interval& left, const Interval& right) {
  if (!is_exact(left) && !is_exact(right)) {
    ++undecided;
  } else if (is_exact(left) && is_exact(right) && left.low == right.low) {
    ++ties;
  } else if (left.high <= right.low) {
    ++below;
  } else if (left.low >= right.high) {
    ++above;
  } else {
    ++undecided;
  }
}

Median median_of(std::span<const Interval> observations) {
  if (observations.empty()) throw InvalidOption("values", "empty; a median needs at least one value");
  std::vector<double> low, high;
  Median median;
  for (const Interval& observation : observations) {
    low.push_back(observation.low);
    high.push_back(observation.high);
    median.censored += is_exact(observation) ? 0 : 1;
  }
  median.count = static_cast<int>(observations.size());
  median.value = median_of_values(low);
  median.is_open = median.value != median_of_values(high);
  return median;
}

MeanEstimate seed_estimate(const std::vector<double>& values, bool positive, bool is_sequential) {
  if (!positive || std::any_of(values.begin(), values.end(), [](double value) { return value <= 0; }))
    return raw_estimate(values, is_sequential);
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  MeanEstimate estimate = raw_estimate(logarithms, is_sequential);
  estimate.mean = std::exp(estimate.mean);
  if (estimate.interval)
    estimate.interval = Interval{std::exp(estimate.interval->low), std::exp(estimate.interval->high)};
  return estimate;
}

BandPoint band_point(double x, std::vector<std::optional<double>> seeds, bool positive, bool is_sequential) {
  BandPoint point;
  point.x = x;
  point.seeds = std::move(seeds);
  const std::vector<double> values = finite_values(point.seeds);
  if (values.empty()) return point;
  const MeanEstimate estimate = seed_estimate(values, positive, is_sequential);
  point.mean = estimate.mean;
  set_interval(estimate.interval, point);
  return point;
}

BandPoint median_point(double x, const std::vector<std::optional<Interval>>& seeds, bool is_sequential) {
  BandPoint point;
  point.x = x;
  std::vector<Interval> observations;
  std::vector<double> lows, highs;
  for (const std::optional<Interval>& seed : seeds) {
    point.seeds.push_back(seed && is_exact(*seed) ? std::optional(seed->low) : std::nullopt);
    if (!seed) continue;
    observations.push_back(*seed);
    lows.push_back(seed->low);
    highs.push_back(seed->high);
  }
  if (lows.empty()) return point;
  const Median median = median_of(observations);
  point.mean = median.value;
  point.is_open = median.is_open;
  const double low = median_interval(lows, is_sequential).low;
  if (!std::isfinite(low)) return point;
  point.low = low;
  point.high = median_interval(highs, is_sequential).high;
  return point;
}

}  // namespace moelab
