#pragma once

/// Array types. Arrays are row-major (n, d) everywhere, as in the files that the program writes.

#include <Eigen/Core>

namespace moelab {

template <class Real>
using MatrixOf = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using VectorOf = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

/// Data, metrics and theory work in double.
using Matrix = MatrixOf<double>;
using Vector = VectorOf<double>;

/// A read-only (n, d) view of contiguous row-major memory.
using MatrixView = Eigen::Map<const Matrix>;

}  // namespace moelab
