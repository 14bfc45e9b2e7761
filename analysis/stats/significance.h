#pragma once

/// How strongly paired values speak for or against a range, and how many of them would decide.

#include <functional>
#include <optional>
#include <span>

#include "analysis/stats/intervals.h"

namespace moelab {

/// Two p values, each twice the one-sided one, so that one is at most 1 − level exactly where the interval at
/// that level lies inside, or outside, of the range.
struct RangePValues {
  double inside = 1;   ///< small where the values say that it lies inside
  double outside = 1;  ///< small where they say that it lies outside
};

/// Of the mean μ of n ≥ 2 normal values with mean m, deviation s (ddof 1), against a range (a, b), ends
/// infinite or not. With T of Student's distribution with n − 1 degrees and t(x) = (m − x) √n / s,
///   inside  = 2 max(P(T ≤ t(b)), P(T ≥ t(a))), the two one-sided tests of Schuirmann (1987);
///   outside = 2 min(P(T ≥ t(b)), P(T ≤ t(a))),
/// at most 1. With a = −∞ and b = 0 the smaller of the two is the p value of the paired t test. Equal values
/// have p = 0 on their side.
RangePValues range_p_values(std::span<const double> values, const Interval& range);

/// min(1, 2 P(X ≥ k)) of X ~ Binomial(n, 1/2): small where k of n decidable pairs are too many for equal
/// chances. The sign test's two-sided p value with k the larger of the two counts.
double sign_p_value(int count, int decidable);

/// Fewer decidable pairs cannot bring the sign test's p below .05: 2 · 2⁻⁵ = .0625.
constexpr int kLeastDecidablePairs = 6;

/// The least n in [from, kMostSeeds] of which `decides` holds, given that it holds of all greater ones, too;
/// none where there is none.
std::optional<int> least_count(int from, const std::function<bool(int)>& decides);

constexpr int kMostSeeds = 1'000'000;

}  // namespace moelab
