#pragma once

/// The decompositions in use, compiled once: every source that names one of Eigen's own costs 10 s to
/// compile.

#include "sim/base/types.h"

namespace moelab {

/// A = V diag(λ) Vᵀ of a symmetric matrix (d, d), of which the lower triangle is read.
struct SymmetricEigen {
  Vector values;   ///< λ (d), ascending
  Matrix vectors;  ///< V (d, d), orthonormal columns
};

SymmetricEigen symmetric_eigen(const Matrix& symmetric);

/// The eigenvalues alone, ascending.
Vector symmetric_eigenvalues(const Matrix& symmetric);

/// A = Q R of a matrix (n, m), n ≥ m, by Householder reflections.
struct QrFactors {
  Matrix q;         ///< (n, m), orthonormal columns
  Vector diagonal;  ///< of R (m); its signs are not fixed
};

QrFactors qr_factors(const Matrix& a);

/// The x (m) of least norm among those of least ‖A x − b‖, A (n, m) of any rank, b (n).
Vector least_norm_solution(const Matrix& a, const Vector& b);

/// A⁻¹ (d, d), by LU with partial pivoting.
Matrix inverse(const Matrix& a);

}  // namespace moelab
