#pragma once

/// What a figure shows at one x: what stands for the seeds, its interval, and the seeds themselves.

#include <optional>
#include <vector>

#include "analysis/stats/intervals.h"

namespace moelab {

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
