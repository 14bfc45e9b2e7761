#pragma once

/// What a figure shows at one x: the mean over seeds, its interval, and the seeds themselves.

#include <optional>
#include <vector>

namespace moelab {

struct BandPoint {
  double x = 0;
  std::optional<double> mean;       ///< none when no seed has a value
  std::optional<double> low, high;  ///< 95 % Student-t interval of the mean; none with fewer than two values
  std::vector<std::optional<double>>
      seeds;  ///< by seed index; none where the cell diverged, failed or is missing
};

/// The arithmetic mean and its 95 % interval over the seeds that have a finite value. On a logarithmic axis
/// an interval that reaches zero or below cannot be drawn: where all values are positive, its lower end is
/// then raised to the smallest of them.
BandPoint band_point(double x, std::vector<std::optional<double>> seeds, bool logarithmic);

}  // namespace moelab
