#pragma once

/// Condition numbers, of matrices that may be indefinite too.

#include "sim/base/types.h"

namespace moelab {

/// What the eigenvalues λ of a symmetric matrix say of descent on the quadratic form that it belongs to.
struct Conditioning {
  double condition = 1;  ///< κ = max|λ| / min|λ|; infinite for a singular matrix
  double largest = 0;    ///< λ_max
  double smallest = 0;   ///< λ_min
  int negative = 0;      ///< eigenvalues below −d ε max|λ|, which is rounding
};

/// Only the lower triangle is read. For positive definite matrices κ = λ_max/λ_min. Throws InvalidOption for
/// a matrix that is empty or not square.
Conditioning conditioning(const Matrix& symmetric);

/// M Σ M with M = diag(weights): the covariance of M h (Nielsen et al. 2025, Eq. 32).
Matrix transformed_covariance(const Matrix& covariance, const Vector& weights);

}  // namespace moelab
