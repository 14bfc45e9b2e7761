#pragma once

/// Confidence sequences: intervals that hold at every number of values at once, so that one may look after
/// each and stop when one likes. An interval of level 1 − α misses the truth at any n with probability α at
/// most over the whole sequence.
///
/// The mean of normal values: a mixture over the effect δ = (μ − μ0)/σ ~ N(0, 1), σ under its right Haar
/// measure. With n values of mean m and deviation s (ddof 1), t = √n (m − μ0)/s and g = 1 + n, the ratio of
/// the likelihoods of t,
///   B = g^(−1/2) [(1 + t²/(n − 1)) / (1 + t²/(g (n − 1)))]^(n/2),
/// is a martingale under μ0, so that P(B ≥ 1/α at some n) ≤ α (Ville); the interval holds every μ0 with B <
/// 1/α. Wang, Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
/// variance", Sequential Analysis 44, 2025 (its Gaussian mixture); the martingale goes back to Lai 1976. It
/// is exact for normal values alone.
///
/// The median of values of any continuous law: signs of x_i − θ are fair coins, and with k of n above θ
///   B = 2^n Beta(k + 1/2, n − k + 1/2) / Beta(1/2, 1/2)
/// is a martingale (Robbins 1970; for quantiles Howard, Ramdas, Bernoulli 28, 2022). The interval holds every
/// θ with B < 1/α: it lies between two of the sorted values.

#include <span>

#include "analysis/stats/intervals.h"

namespace moelab {

/// Verdicts wait for as many pairs: the sequences may be looked at from any number on.
constexpr int kLeastSequentialPairs = 6;

/// The t-mixture interval of a mean of n ≥ 2 values with sample variance s² (ddof 1); its ends are infinite
/// where no μ0 is excluded yet. Equal values give their own point.
Interval t_mixture_interval(double mean, double variance, int count, double level = 0.95);

/// min(1, 1/B) for μ0: at most 1 − level exactly where the interval leaves μ0 out. Valid at every n at once.
double t_mixture_p_value(double mean, double variance, int count, double mu0);

/// The interval of the median; its ends are infinite where no value is excluded yet.
Interval sign_sequence_interval(std::span<const double> values, double level = 0.95);

/// min(1, 1/B) of fair coins, k of n above.
double sign_sequence_p_value(int above, int decidable);

}  // namespace moelab
