#include "analysis/theory/acmoe2025/instances.h"

#include "sim/base/feature_weights.h"
#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

std::span<const double> span_of(const Vector& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

Vector vector_of(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
}

}  // namespace

Vector draw_log_normal(Engine& engine, int dim, double spread) {
  return draw_normals(engine, dim, 1, spread).array().exp();
}

Matrix draw_wishart(Engine& engine, int dim, int degrees) {
  const Matrix draws = draw_normals(engine, degrees, dim);
  return draws.transpose() * draws;
}

Matrix draw_near_axis_rotation(Engine& engine, int dim, double tilt) {
  const Matrix tilted = Matrix::Identity(dim, dim) + draw_normals(engine, dim, dim, tilt);
  Matrix rotation = qr_factors(tilted).q;
  for (Eigen::Index i = 0; i < dim; ++i) {
    if (rotation(i, i) < 0) rotation.col(i) = -rotation.col(i);
  }
  return rotation;
}

Vector inverse_weights(const Vector& dispersion) {
  return vector_of(inverse_dispersion_weights(span_of(dispersion)));
}

Vector optimal_weights(const Vector& dispersion, double lambda) {
  return vector_of(optimal_feature_weights(span_of(dispersion), lambda));
}

}  // namespace moelab
