#pragma once

/// The reference values of this folder, and how its tests read and compare arrays.

#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

namespace reference {
#include "tests/analysis/metrics/geometry_reference.inc"
}

/// Eigenvalues and sums over a few hundred numbers of order 1 in double: rounding stays far below this.
constexpr double kRounding = 1e-10;
/// For hand-made cases whose sums are exact but for a root or a quotient.
constexpr double kLastBits = 1e-14;

inline MatrixView view(const std::vector<double>& values, int rows, int columns) {
  return {values.data(), rows, columns};
}

/// The largest difference between entries, NaN where there is one.
inline double difference(const Matrix& left, const Matrix& right) {
  return (left - right).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

}  // namespace moelab
