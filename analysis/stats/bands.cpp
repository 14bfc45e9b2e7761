#include "analysis/stats/bands.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "analysis/stats/observation.h"
#include "analysis/stats/sequences.h"

namespace moelab {
namespace {

/// The seeds with a finite value; others are emptied.
std::vector<double> finite_values(std::vector<std::optional<double>>& seeds) {
  std::vector<double> values;
  for (std::optional<double>& seed : seeds) {
    if (seed && !std::isfinite(*seed)) seed.reset();
    if (seed) values.push_back(*seed);
  }
  return values;
}

/// The largest k with 2 P(Bin(n, 1/2) < k) ≤ .05; 0 for none.
std::size_t median_rank(std::size_t count) {
  const boost::math::binomial law(static_cast<double>(count), 0.5);
  std::size_t rank = 0;
  while (rank < count && 2 * boost::math::cdf(law, static_cast<double>(rank)) <= 0.05) ++rank;
  return rank;
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
  std::vector<double> values;
  for (const std::optional<Interval>& seed : seeds) {
    point.seeds.push_back(seed && is_exact(*seed) ? std::optional(seed->low) : std::nullopt);
    if (!seed) continue;
    observations.push_back(*seed);
    values.push_back(seed->low);
  }
  if (values.empty()) return point;
  const Median median = median_of(observations);
  point.mean = median.value;
  point.is_open = median.is_open;
  if (is_sequential) {
    set_interval(sign_sequence_interval(values), point);
    return point;
  }
  std::sort(values.begin(), values.end());
  if (const std::size_t rank = median_rank(values.size()); rank > 0)
    set_interval(Interval{values[rank - 1], values[values.size() - rank]}, point);
  return point;
}

}  // namespace moelab
