#pragma once

/// How far a fitted Gaussian mixture of linear experts is from the true one (Nguyen et al., NeurIPS 2023).
/// Uses no routing.

#include "analysis/metrics/voronoi.h"

namespace moelab {

struct GaussianErrors {
  /// D, see gaussian_errors(); none where a cell has more than three fits, for which R is not known.
  std::optional<double> loss;
  std::optional<double> exact;  ///< √(Σ w_i (ν_i − ν*)² / Σ w_i) over cells with one fit
  std::optional<double> over;   ///< over cells with several
};

/// With the cells and the shift of `errors`, R = R(|V_j|), R(2) = 4, R(3) = 6, and w the gates at x = 0,
///   D = Σ_{|V_j| = 1} Σ w_i (‖Δg‖ + ‖Δa‖ + |Δb| + |Δν|) + Σ_{|V_j| > 1} Σ w_i (‖Δg‖^R + |Δb|^R + ‖Δa‖^(R/2)
///   +
///       |Δν|^(R/2)) + Σ_j |Σ_{V_j} w_i − w*_j|.
/// The source has exp(β0) for w and the least D over common shifts; here w adds up to 1, and the shift is
/// that of least squares.
GaussianErrors gaussian_errors(const MixtureComponents& fitted, const Vector& fitted_variance,
                               const MixtureComponents& truth, const Vector& true_variance,
                               const VoronoiErrors& errors);

}  // namespace moelab
