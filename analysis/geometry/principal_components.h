#pragma once

/// Principal components of rows x (n, d): directions of largest variance.

#include "sim/base/types.h"

namespace moelab {

/// Rows in the coordinates of the first k components, by variance.
struct PrincipalComponents {
  Matrix coordinates;     ///< (n, k), of the centred rows
  Vector variance_share;  ///< (k), variance along the component ÷ total variance; 0 where that is 0
  Vector centre;          ///< (d), x̄
  Matrix directions;      ///< (d, k), the components
};

/// The eigenvectors v of the covariance (1/n) Σ_i (x_i − x̄)(x_i − x̄)ᵀ. Of v and −v, the one whose entry of
/// largest size is positive. Throws InvalidOption for no rows, or unless 1 ≤ k ≤ d.
PrincipalComponents principal_components(const Eigen::Ref<const Matrix>& x, int components);

}  // namespace moelab
