#include "analysis/stats/bands.h"

#include <algorithm>
#include <cmath>

#include "analysis/stats/observation.h"

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
  double term = std::pow(0.5, static_cast<double>(count)), below = 0;  // P(Bin = k), P(Bin < k)
  std::size_t rank = 0;
  while (rank < count && 2 * (below + term) <= 0.05) {
    below += term;
    term *= static_cast<double>(count - rank) / static_cast<double>(rank + 1);
    ++rank;
  }
  return rank;
}

}  // namespace

MeanEstimate figure_estimate(const std::vector<double>& values, bool positive) {
  if (!positive || std::any_of(values.begin(), values.end(), [](double value) { return value <= 0; }))
    return mean_estimate(values);
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  MeanEstimate estimate = mean_estimate(logarithms);
  estimate.mean = std::exp(estimate.mean);
  if (estimate.interval)
    estimate.interval = Interval{std::exp(estimate.interval->low), std::exp(estimate.interval->high)};
  return estimate;
}

BandPoint band_point(double x, std::vector<std::optional<double>> seeds, bool positive) {
  BandPoint point;
  point.x = x;
  point.seeds = std::move(seeds);
  const std::vector<double> values = finite_values(point.seeds);
  if (values.empty()) return point;
  const MeanEstimate estimate = figure_estimate(values, positive);
  point.mean = estimate.mean;
  if (!estimate.interval) return point;
  point.low = estimate.interval->low;
  point.high = estimate.interval->high;
  return point;
}

BandPoint median_point(double x, const std::vector<std::optional<Interval>>& seeds) {
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
  std::sort(values.begin(), values.end());
  if (const std::size_t rank = median_rank(values.size()); rank > 0) {
    point.low = values[rank - 1];
    point.high = values[values.size() - rank];
  }
  return point;
}

}  // namespace moelab
