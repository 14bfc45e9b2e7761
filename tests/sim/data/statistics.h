#pragma once

/// What tests of generators ask of drawn rows.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// The rows with that label.
inline std::vector<int> rows_of(const std::vector<int>& labels, int wanted) {
  std::vector<int> rows;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == wanted) rows.push_back(static_cast<int>(i));
  }
  return rows;
}

inline Matrix rows_of(const Matrix& values, const std::vector<int>& labels, int wanted) {
  return values(rows_of(labels, wanted), Eigen::all);
}

/// The largest deviation, in standard errors, of the mean and second moments of rows of `values` from N(0,
/// I).
inline double standard_normal_deviation(const Matrix& values) {
  const double rows = static_cast<double>(values.rows());
  const Matrix second = values.transpose() * values / rows;
  double worst = values.colwise().mean().cwiseAbs().maxCoeff() * std::sqrt(rows);
  for (Eigen::Index i = 0; i < second.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      const double error = i == j ? std::sqrt(2 / rows) : std::sqrt(1 / rows);
      worst = std::max(worst, std::abs(second(i, j) - (i == j ? 1 : 0)) / error);
    }
  }
  return worst;
}

/// Whether χ² of so many degrees of freedom is below its quantile at 1 - 1e-4: a correct generator passes for
/// all but one seed in ten thousand.
bool below_quantile(double statistic, double freedom);

/// Whether counts of equally likely outcomes pass a χ² test.
inline bool looks_uniform(const Vector& counts) {
  const double expected = counts.sum() / static_cast<double>(counts.size());
  return below_quantile((counts.array() - expected).square().sum() / expected,
                        static_cast<double>(counts.size() - 1));
}

/// The W of least ‖X W − Y‖.
Matrix regression(const Matrix& x, const Matrix& y);

/// The largest mean, in standard errors, of a column of y − prediction times a function of x: its squared
/// norm, or the prediction's first column. The conditional mean leaves a residual orthogonal to every
/// function of x.
double residual_correlation(const Matrix& x, const Matrix& y, const Matrix& prediction);

/// An orthonormal basis (n, n). Its first `rank` columns span the columns of a matrix (n, m), up to
/// `rounding` of its largest.
struct Span {
  Matrix basis;
  int rank;
};
Span span_of_columns(const Matrix& a, double rounding);

/// The distance of the two nearest rows, computed apart from the generators' own.
inline double closest_pair(const Matrix& means) {
  double least = std::numeric_limits<double>::infinity();
  for (Eigen::Index i = 0; i < means.rows(); ++i) {
    for (Eigen::Index j = 0; j < i; ++j) least = std::min(least, (means.row(i) - means.row(j)).norm());
  }
  return least;
}

}  // namespace moelab
