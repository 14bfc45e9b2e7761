#include "analysis/stats/bands.h"

#include <algorithm>
#include <cmath>

#include "analysis/stats/intervals.h"

namespace moelab {

BandPoint band_point(double x, std::vector<std::optional<double>> seeds, bool logarithmic) {
  BandPoint point;
  point.x = x;
  point.seeds = std::move(seeds);
  std::vector<double> values;
  for (std::optional<double>& seed : point.seeds) {
    if (seed && !std::isfinite(*seed)) seed.reset();
    if (seed) values.push_back(*seed);
  }
  if (values.empty()) return point;
  const MeanEstimate estimate = mean_estimate(values);
  point.mean = estimate.mean;
  if (!estimate.interval) return point;
  point.low = estimate.interval->low;
  point.high = estimate.interval->high;
  const double smallest = *std::min_element(values.begin(), values.end());
  if (logarithmic && *point.low <= 0 && smallest > 0) point.low = smallest;
  return point;
}

}  // namespace moelab
