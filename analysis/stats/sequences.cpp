#include "analysis/stats/sequences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// ln B of the signs.
double log_sign_ratio(int above, int decidable) {
  const double below = decidable - above;
  return decidable * std::numbers::ln2 + std::lgamma(above + 0.5) + std::lgamma(below + 0.5) -
         std::lgamma(decidable + 1.0) - std::log(std::numbers::pi);
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
  // With θ below the i-th of the sorted values (from 0) n − i values are above it.
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

}  // namespace moelab
