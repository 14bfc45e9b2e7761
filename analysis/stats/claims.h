#pragma once

/// A scenario's claims, confronted with its results.
///
/// A claim compares two sides over paired seeds at some sweep points. With l_s and r_s the values of the two
/// sides at seed s, each times its `factor`, the paired difference is δ_s = ln l_s − ln r_s when every metric
/// of the claim is declared positive, else δ_s = l_s − r_s. A positive metric that is not above 0 somewhere
/// turns the whole claim to raw differences, and a note says so. `estimate` is the mean of δ over the seeds,
/// `interval` its 95 % Student-t interval.
///
/// At one point, with the 95 % interval for the claim and, against it, the interval at level 1 − 0.05/m, m
/// the number of points (Bonferroni: one point in error would refute the whole claim):
///   `<`, `>`  reproduced when the 95 % interval lies on the claimed side of zero; refuted when the wider one
///             lies wholly on the other side; else inconclusive.
///   `~`       the tolerance band is [ln(1−tol), ln(1+tol)] for differences of logarithms and
///             ±tol·|mean of r| for raw ones. Reproduced when the 95 % interval lies inside; refuted when the
///             wider one lies wholly outside; else inconclusive.
/// A point with fewer than 3 pairs, or with a pair whose cell diverged, failed, is missing or lacks the
/// metric, is inconclusive; its numbers are over the complete pairs.
///
/// The claim is refuted when it is at some point, reproduced when it is at every point, else inconclusive.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/claim.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"

namespace moelab {

enum class Verdict { reproduced, refuted, inconclusive };
std::string to_string(Verdict verdict);

struct ClaimPoint {
  SweepPoint left_at, right_at;      ///< where each side was taken; they differ with `where` and in trends
  std::optional<MeanEstimate> left;  ///< mean of the side over the complete pairs, before its factor; a
                                     ///< constant has no interval
  std::optional<MeanEstimate> right;
  double left_factor = 1, right_factor = 1;
  std::optional<MeanEstimate> difference;  ///< δ: estimate and 95 % interval
  bool logarithmic = false;                ///< δ is a difference of logarithms
  int pairs = 0;                           ///< complete pairs
  Verdict verdict = Verdict::inconclusive;
  std::string note;  ///< why the point is inconclusive or its scale unusual; else empty
};

struct ClaimResult {
  std::string id;
  Verdict verdict = Verdict::inconclusive;
  std::string text;  ///< the claim in words: its own `text`, or composed from its sides
  std::string source;
  std::string reported;  ///< see Claim
  std::vector<ClaimPoint> points;
};

/// Judges claims. A metric of which `is_positive` holds is compared by its logarithm. Throws InvalidOption
/// ("claims[i]…") for arms and points that do not exist.
std::vector<ClaimResult> evaluate_claims(const std::vector<Claim>& claims, const ResultTable& table,
                                         const std::function<bool(const std::string&)>& is_positive);

}  // namespace moelab
