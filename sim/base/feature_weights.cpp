#include "sim/base/feature_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/base/contract.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The share of the largest dispersion below which a dispersion is rounding.
constexpr double kNoDispersion = 1e-12;

bool all_finite(std::span<const double> dispersion) {
  for (const double s : dispersion) {
    if (s < 0) throw InvalidOption("dispersion", fmt::format("{} is negative", s));
  }
  return std::all_of(dispersion.begin(), dispersion.end(), [](double s) { return std::isfinite(s); });
}

void fill_with_not_numbers(std::span<double> weights) {
  std::fill(weights.begin(), weights.end(), std::numeric_limits<double>::quiet_NaN());
}

double weight_sum(std::span<const double> excess, double shift) {
  double sum = 0;
  for (const double e : excess) sum += 1 / (e + shift);
  return sum;
}

/// u ≥ 1 with Σ_q 1/(e_q + u) = 1, for d values e_q ≥ 0 of which the smallest is 0. The sum is at least 1 at
/// u = 1 and at most 1 at u = d, whatever the e_q.
double shift_of_sum_one(std::span<const double> excess) {
  const double low = 1, high = static_cast<double>(excess.size());
  const auto beyond_one = [&](double shift) { return weight_sum(excess, shift) - 1; };
  const double at_low = beyond_one(low), at_high = beyond_one(high);
  if (at_low <= 0) return low;
  if (at_high >= 0) return high;
  constexpr int kDigits = std::numeric_limits<double>::digits - 1;
  std::uintmax_t iterations = 200;
  const auto [below, above] = boost::math::tools::toms748_solve(
      beyond_one, low, high, at_low, at_high, boost::math::tools::eps_tolerance<double>(kDigits), iterations);
  return (below + above) / 2;
}

}  // namespace

std::vector<double> inverse_dispersion_weights(std::span<const double> dispersion) {
  std::vector<double> weights(dispersion.size());
  inverse_dispersion_weights(dispersion, weights);
  return weights;
}

void inverse_dispersion_weights(std::span<const double> dispersion, std::span<double> weights) {
  MOELAB_EXPECT(weights.size() == dispersion.size());
  if (dispersion.empty()) return;
  if (!all_finite(dispersion)) return fill_with_not_numbers(weights);
  const double smallest_counted = kNoDispersion * *std::max_element(dispersion.begin(), dispersion.end());
  const auto counts = [&](double s) { return s > smallest_counted; };
  double tightest = std::numeric_limits<double>::infinity();
  for (const double s : dispersion) {
    if (counts(s)) tightest = std::min(tightest, s);
  }
  // Relative to the tightest feature no quotient overflows.
  double sum = 0, counted = 0;
  for (const double s : dispersion) {
    if (!counts(s)) continue;
    sum += tightest / s;
    ++counted;
  }
  for (std::size_t q = 0; q < weights.size(); ++q) {
    weights[q] = counts(dispersion[q]) ? tightest / dispersion[q] * (counted / sum) : 1.0;
  }
}

std::vector<double> optimal_feature_weights(std::span<const double> dispersion, double lambda) {
  std::vector<double> weights(dispersion.size());
  optimal_feature_weights(dispersion, lambda, weights);
  return weights;
}

void optimal_feature_weights(std::span<const double> dispersion, double lambda, std::span<double> weights) {
  MOELAB_EXPECT(weights.size() == dispersion.size());
  if (!(lambda > 0)) throw InvalidOption("lambda", fmt::format("{} is not positive", lambda));
  if (dispersion.empty()) return;
  if (!all_finite(dispersion)) return fill_with_not_numbers(weights);
  // With e_q = (s_q − min s) d/λ and u = (α + min s) d/λ the weights are 1/(e_q + u): every λ and every scale
  // of s lead to the same bracket 1 ≤ u ≤ d.
  const double dim = static_cast<double>(dispersion.size());
  const double tightest = *std::min_element(dispersion.begin(), dispersion.end());
  for (std::size_t q = 0; q < weights.size(); ++q) weights[q] = (dispersion[q] - tightest) / lambda * dim;
  const double shift = shift_of_sum_one(weights);
  const double sum = weight_sum(weights, shift);
  for (double& weight : weights) weight = 1 / (weight + shift) / sum;
}

}  // namespace moelab
