#pragma once

/// Random instances that the checks of Nielsen et al. 2025 share.

#include "analysis/theory/frequencies.h"
#include "sim/base/types.h"

namespace moelab {

/// exp(a z_q), z ~ N(0, I_d): dispersions with log s ~ N(0, a²).
Vector draw_log_normal(Engine& engine, int dim, double spread);

/// Wishart(I_d, degrees): the sum of that many squares of N(0, I_d).
Matrix draw_wishart(Engine& engine, int dim, int degrees);

/// Orthonormal columns near the axes: those of I + tilt · G, G standard normal, made orthonormal from left to
/// right, with positive diagonal.
Matrix draw_near_axis_rotation(Engine& engine, int dim, double tilt);

/// inverse_dispersion_weights and optimal_feature_weights of sim/base, of vectors.
Vector inverse_weights(const Vector& dispersion);
Vector optimal_weights(const Vector& dispersion, double lambda);

}  // namespace moelab
