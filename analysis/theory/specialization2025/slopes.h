#pragma once

/// Derivatives of the orthogonality and variance losses of Guo et al. 2025, as printed and as they are.
///   L_v(S) = −(1/E) Σ_ij (s_ij − s̄_j)² for scores S (N, E), Eq. 7;
///   L_o(X) = Σ_{j≠k} (x_j·x_k)² / ‖x_k‖² for the outputs X (K, o) of a row's active experts, Eq. 6 as a sum
///   of squared lengths.

#include <functional>
#include <string>

#include "analysis/theory/check.h"
#include "sim/base/types.h"

namespace moelab {

/// The gradient of a loss at a matrix, of its shape.
using MatrixSlope = std::function<Matrix(const Matrix&)>;

double variance_loss(const Matrix& scores);
/// −(2/E)(s_ij − s̄_j): what comes through s̄_j vanishes, because Σ_i (s_ij − s̄_j) = 0.
Matrix variance_slope(const Matrix& scores);
/// −(2(N − 1)/(E N))(s_ij − s̄_j), Eq. 9.
Matrix variance_slope_as_printed(const Matrix& scores);

double orthogonality_loss(const Matrix& outputs);
/// 2 Σ_{k≠j} (x_j·x_k)(1/‖x_k‖² + 1/‖x_j‖²) x_k − 2 Σ_{k≠j} (x_j·x_k)²/‖x_j‖⁴ x_j.
Matrix orthogonality_slope(const Matrix& outputs);
/// Σ_{k≠j} x_k x_kᵀ x_j / ‖x_k‖², Eq. 8 and 28: without the factor 2, and as if x_j were no denominator.
Matrix orthogonality_slope_as_printed(const Matrix& outputs);

/// The largest difference from central differences of the loss, relative to their largest entry, over random
/// matrices.
CheckFinding check_variance_slope(const CheckEffort& effort, const MatrixSlope& slope);
CheckFinding check_orthogonality_slope(const CheckEffort& effort, const MatrixSlope& slope);

/// A term of a batch whose outputs are all multiplied by 0.1, over the term before: 0.1^`power`. The one that
/// differs most over random outputs.
CheckFinding check_shrinking(const CheckEffort& effort, const std::string& term, int power);

}  // namespace moelab
