#include "analysis/stats/rate_regression.h"

#include <cmath>
#include <optional>

namespace moelab {
namespace {

/// s²(n), ddof 1; none with fewer than two values.
std::optional<double> log_variance(const RateData& data, std::size_t size) {
  std::vector<double> logs;
  for (const auto& repetition : data.errors) {
    if (repetition[size]) logs.push_back(std::log(*repetition[size]));
  }
  if (logs.size() < 2) return std::nullopt;
  double mean = 0, square = 0;
  for (const double value : logs) mean += value / static_cast<double>(logs.size());
  for (const double value : logs) square += (value - mean) * (value - mean);
  return square / static_cast<double>(logs.size() - 1);
}

}  // namespace

Line regress(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights) {
  double total = 0, mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    total += weights[i];
    mean_x += weights[i] * x[i];
    mean_y += weights[i] * y[i];
  }
  mean_x /= total;
  mean_y /= total;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += weights[i] * (x[i] - mean_x) * (x[i] - mean_x);
    xy += weights[i] * (x[i] - mean_x) * (y[i] - mean_y);
  }
  return {xy / xx, mean_y - xy / xx * mean_x};
}

std::vector<double> size_weights(const RateData& data) {
  std::vector<std::optional<double>> variances;
  double mean = 0, known = 0;
  for (std::size_t s = 0; s < data.samples.size(); ++s) {
    variances.push_back(log_variance(data, s));
    if (!variances.back()) continue;
    mean += *variances.back();
    ++known;
  }
  mean = known > 0 ? mean / known : 0;
  std::vector<double> weights;
  for (const std::optional<double>& variance : variances) {
    weights.push_back(mean > 0 ? 2 / (variance.value_or(mean) + mean) : 1);
  }
  return weights;
}

}  // namespace moelab
