#pragma once

/// The distance of a fitted mixture of experts from the true one: losses over Voronoi cells, and errors of
/// each parameter (Nguyen et al., Statistical Advantages of Perturbing Cosine Router in Mixture of Experts).
/// Uses no routing.

#include <optional>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// Components of a mixture of ridge experts, as far as data identify them: gate directions g (k, m), weights
/// w (k), slopes a (k, d) and intercepts b (k). g multiplies the input: β1 of a linear router, β1 / (‖β1‖ +
/// τ1) of a cosine. A common shift of the first `shifted` columns of g changes nothing. Softmax gates have
/// such columns; their weights sum to 1.
struct MixtureComponents {
  Matrix gate;
  Vector weight;
  Matrix slope;
  Vector intercept;
  int shifted = 0;
};

/// √(Σ_i w_i ‖Δ_i‖² / Σ_i w_i) over some fits i.
struct ParameterErrors {
  double gate = 0;       ///< Δ of g
  double direction = 0;  ///< of g / ‖g‖; 0 where either is 0
  double length = 0;     ///< of ‖g‖
  double slope = 0;      ///< of a
  double intercept = 0;  ///< of b
  double expert = 0;     ///< of (a, b)
};

struct VoronoiErrors {
  std::vector<int> cells;                ///< the true component of each fit
  Eigen::RowVectorXd shift;              ///< v (m), 0 beyond the columns that may shift
  double loss = 0;                       ///< loss_exact + loss_over + weight_error
  double loss_exact = 0;                 ///< Σ w_i (‖Δg_i‖ + ‖Δη_i‖), cells with one fit
  double loss_over = 0;                  ///< Σ w_i (‖Δg_i‖² + ‖Δη_i‖²), cells with several
  double weight_error = 0;               ///< Σ_j |Σ_{i in cell j} w_i − w*_j|
  int empty_cells = 0;                   ///< true components without a fit
  std::optional<ParameterErrors> exact;  ///< over the cells with one fit; none where there are none
  std::optional<ParameterErrors> over;   ///< over the cells with several
  std::optional<ParameterErrors> exact_unweighted, over_unweighted;  ///< the same with every w_i = 1
};

/// Each fit belongs to the nearest true component, by the Euclidean distance of (g, a, b). Let w be the gates
/// at x = 0, softmax(β0) for a linear router (the paper has exp(β0)), η = (a, b), and V_j the cells. Then
///   D = Σ_{|V_j| = 1} Σ_{i in V_j} w_i (‖Δg_i‖ + ‖Δη_i‖) + Σ_{|V_j| > 1} Σ w_i (‖Δg_i‖² + ‖Δη_i‖²)
///       + Σ_j |Σ_{i in V_j} w_i − w*_j|.
///
/// Invariances. Cells do not depend on labels, and the softmax does not depend on a common shift of β0. A
/// common shift v of g adds the same score to every component. The fitted g are therefore moved by the v that
/// minimises Σ_i w_i ‖(g_i + v, η_i) − (g*, η*)‖², over v and all maps from fits to true components. At the
/// minimum, each fit belongs to its nearest component. So errors are errors of differences g_i − g_k. This
/// holds for cosines, too: their unit vectors have continuous equivalents when k ≤ d − 1. With `even_power`,
/// (a, b) and (−a, −b) are one expert, and the nearer of the two counts.
///
/// Throws InvalidOption for more than a million maps, (true components)^(fits).
VoronoiErrors voronoi_errors(const MixtureComponents& fitted, const MixtureComponents& truth,
                             bool even_power);

// The distance of a fitted Gaussian mixture of linear experts from the true one (Nguyen et al., NeurIPS
// 2023). Uses no routing.

struct GaussianErrors {
  /// D of gaussian_errors(). None where a cell has more than three fits: R is unknown there.
  std::optional<double> loss;
  std::optional<double> exact;  ///< √(Σ w_i (ν_i − ν*)² / Σ w_i) over cells with one fit
  std::optional<double> over;   ///< over cells with several
};

/// With the cells and the shift of `errors`, R = R(|V_j|), R(2) = 4, R(3) = 6, and w the gates at x = 0,
///   D = Σ_{|V_j| = 1} Σ w_i (‖Δg‖ + ‖Δa‖ + |Δb| + |Δν|)
///       + Σ_{|V_j| > 1} Σ w_i (‖Δg‖^R + |Δb|^R + ‖Δa‖^(R/2) + |Δν|^(R/2)) + Σ_j |Σ_{V_j} w_i − w*_j|.
/// The source has exp(β0) for w, and minimises D over common shifts. Here w sums to 1, and the shift is the
/// least-squares one.
GaussianErrors gaussian_errors(const MixtureComponents& fitted, const Vector& fitted_variance,
                               const MixtureComponents& truth, const Vector& true_variance,
                               const VoronoiErrors& errors);

}  // namespace moelab
