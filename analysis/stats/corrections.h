#pragma once

/// P values corrected for the number of tests. Both functions keep the order of what they are given.

#include <span>
#include <vector>

namespace moelab {

/// Holm (1979): with p_(1) ≤ … ≤ p_(m), p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) p_(j)). Calling what has
/// p̃ ≤ α decided, the chance of a single error is at most α, whatever the dependence.
std::vector<double> holm(std::span<const double> p_values);

/// Benjamini and Hochberg (1995): p̃_(i) = min_{j ≥ i} min(1, m p_(j) / j). Calling what has p̃ ≤ q decided,
/// the expected share of errors among the decided is at most q where tests are independent or positively
/// dependent.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

}  // namespace moelab
