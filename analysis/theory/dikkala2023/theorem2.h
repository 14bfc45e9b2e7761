#pragma once

/// What the proof of Theorem 2 of Dikkala et al. 2023 (appendix E) says of E = O(k log k) samples of a
/// mixture of k Gaussians N(μ_c, I_d), c-separated: which clusters they cover, and how far apart they lie.

#include <functional>

#include "analysis/theory/check.h"

namespace moelab {

/// E = ⌈c k ln k⌉.
int router_rows(double c, int clusters);

/// Whether each of 0 … k − 1 is among the labels.
bool covers_all(const std::vector<int>& labels, int clusters);

/// The probability that E labels drawn uniformly from k take every value: the coupon collector's problem,
/// k! S(E, k) / k^E with S of Stirling's second kind. Computed label by label as a chain in the number of
/// different values so far, a sum of positive terms; inclusion and exclusion cancels.
double coverage_probability(int clusters, int rows);

using CoverageFormula = std::function<double(int clusters, int rows)>;

/// Every cluster owns a row: the share of routers drawn from a mixture against the exact probability, the
/// largest difference over several k and c in standard errors.
CheckFinding check_coverage(const CheckEffort& effort, const CoverageFormula& formula = coverage_probability);

/// "With probability ≥ 1 − 1/poly(k)": the largest of (1 − P) k^(c − 1) over k and c > 1, at most 1 by the
/// union bound.
CheckFinding check_coverage_bound(const CoverageFormula& formula = coverage_probability);

/// Pr[‖x_i − x_j‖ ≤ C√d] for x_i and x_j of two components N(μ, I) whose centres are c√d apart:
/// ‖x_i − x_j‖² / 2 has d degrees of freedom and non-centrality c² d / 2.
double near_probability(int dim, double separation, double radius);

using NearFormula = std::function<double(int dim, double separation, double radius)>;

/// The proof's (1): log10 of Pr[‖x_i − x_j‖ ≤ C√d] d^10, the largest over 2 ≤ d ≤ 1024, at c = 1.
CheckFinding check_distance(double radius);

/// The probability against draws, at radii where it can be seen: the largest difference in standard errors.
CheckFinding check_distance_drawn(const CheckEffort& effort, const NearFormula& formula = near_probability);

}  // namespace moelab
