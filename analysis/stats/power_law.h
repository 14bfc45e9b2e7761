#pragma once

/// Exponents of a product of powers.

#include <optional>
#include <vector>

#include "analysis/stats/intervals.h"
#include "sim/base/types.h"

namespace moelab {

/// y = C Π_j x_j^{a_j}.
struct PowerLaw {
  double constant = 0;              ///< C
  std::vector<double> exponents;    ///< a (m)
  std::vector<Interval> intervals;  ///< of each exponent, 95 %
  double deviation = 0;             ///< s below: what is left in ln y
};

/// y = C x with one C for all.
struct Proportion {
  double constant = 0;   ///< C
  double deviation = 0;  ///< standard deviation of ln(y ÷ x), ddof 1
};

/// ln C = mean of ln(y ÷ x), (n). None where n < 2. Throws InvalidOption for values that are not positive.
std::optional<Proportion> fit_proportion(const Vector& x, const Vector& y);

/// Least squares of ln y (n) on ln x (n, m) and a constant. The interval of a_j is
/// â_j ± t_{n−m−1}(.975) · s √((XᵀX)⁻¹)_jj with s² the squared residuals ÷ (n − m − 1): exact for independent
/// normal errors of one size in the logarithms, which what the law misses counts as. None where n < m + 2, or
/// where the columns of X, a constant among them, are dependent. Throws InvalidOption for values that are not
/// positive.
std::optional<PowerLaw> fit_power_law(const Matrix& x, const Vector& y);

}  // namespace moelab
