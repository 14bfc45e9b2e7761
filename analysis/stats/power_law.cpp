#include "analysis/stats/power_law.h"

#include <cmath>

#include "sim/base/error.h"
#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

/// Smallest eigenvalue of XᵀX, relative to the largest, at which columns are told apart: logarithms of a few
/// distinct values are far above it, and rounding is far below.
constexpr double kDependent = 1e-10;

void check_positive(const Matrix& x, const Vector& y) {
  if ((x.array() <= 0).any() || (y.array() <= 0).any())
    throw InvalidOption("values", "a power law needs positive ones");
}

}  // namespace

std::optional<Proportion> fit_proportion(const Vector& x, const Vector& y) {
  check_positive(x, y);
  if (y.size() < 2) return std::nullopt;
  const Vector logs = (y.array() / x.array()).log().matrix();
  const double mean = logs.mean(), freedom = static_cast<double>(y.size() - 1);
  return Proportion{std::exp(mean), std::sqrt((logs.array() - mean).square().sum() / freedom)};
}

std::optional<PowerLaw> fit_power_law(const Matrix& x, const Vector& y) {
  check_positive(x, y);
  const Eigen::Index n = x.rows(), m = x.cols();
  const int freedom = static_cast<int>(n - m - 1);
  if (freedom < 1) return std::nullopt;
  Matrix design(n, m + 1);
  design.col(0).setOnes();
  design.rightCols(m) = x.array().log().matrix();
  const Vector logs = y.array().log().matrix();
  const Matrix squares = design.transpose() * design;
  const Vector spectrum = symmetric_eigenvalues(squares);
  if (spectrum(0) <= kDependent * spectrum(m)) return std::nullopt;
  const Matrix covariance = inverse(squares);
  const Vector fitted = covariance * (design.transpose() * logs);
  const double variance = (logs - design * fitted).squaredNorm() / freedom;
  PowerLaw law;
  law.constant = std::exp(fitted(0));
  law.deviation = std::sqrt(variance);
  for (Eigen::Index j = 1; j <= m; ++j) {
    law.exponents.push_back(fitted(j));
    // The interval of a mean of freedom + 1 values has as many degrees of freedom.
    law.intervals.push_back(
        student_interval(fitted(j), variance * covariance(j, j) * (freedom + 1), freedom + 1));
  }
  return law;
}

}  // namespace moelab
