#include "analysis/geometry/clusters.h"

#include <fmt/core.h>

#include <limits>

#include "sim/base/error.h"
#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

void require_square_matrices(const std::vector<Matrix>& matrices, const Matrix& means, const char* name) {
  if (static_cast<Eigen::Index>(matrices.size()) != means.rows())
    throw InvalidOption(name, fmt::format("{} matrices for {} clusters", matrices.size(), means.rows()));
  for (const Matrix& matrix : matrices) {
    if (matrix.rows() != means.cols() || matrix.cols() != means.cols())
      throw InvalidOption(name, fmt::format("shape ({}, {}), but the means have {} features", matrix.rows(),
                                            matrix.cols(), means.cols()));
  }
}

}  // namespace

Metrics euclidean_metrics(const GaussianClusters& clusters) {
  return Metrics(static_cast<std::size_t>(clusters.means.rows()),
                 Matrix::Identity(clusters.means.cols(), clusters.means.cols()));
}

Metrics diagonal_metrics(const Matrix& weights) {
  Metrics metrics;
  for (Eigen::Index i = 0; i < weights.rows(); ++i) metrics.emplace_back(weights.row(i).asDiagonal());
  return metrics;
}

GaussianClusters contaminated(const GaussianClusters& clusters, const Matrix& noise_covariance) {
  GaussianClusters noisy = clusters;
  for (Matrix& covariance : noisy.covariances) {
    if (covariance.rows() != noise_covariance.rows() || covariance.cols() != noise_covariance.cols())
      throw InvalidOption(
          "noise_covariance",
          fmt::format("shape ({}, {}), but the clusters' covariances have ({}, {})", noise_covariance.rows(),
                      noise_covariance.cols(), covariance.rows(), covariance.cols()));
    covariance += noise_covariance;
  }
  return noisy;
}

Matrix symmetric_root(const Matrix& matrix, const char* name) {
  const auto [values, vectors] = symmetric_eigen(matrix);
  const double rounding = static_cast<double>(matrix.rows()) * std::numeric_limits<double>::epsilon() *
                          values.cwiseAbs().maxCoeff();
  if (values.minCoeff() < -4 * rounding)
    throw InvalidOption(name,
                        fmt::format("has the eigenvalue {}; it must be positive semidefinite", values[0]));
  const Vector roots = values.cwiseMax(0.0).cwiseSqrt();
  return vectors * roots.asDiagonal() * vectors.transpose();
}

void require_shapes(const GaussianClusters& clusters, const Metrics& metrics) {
  require_square_matrices(clusters.covariances, clusters.means, "covariances");
  require_square_matrices(metrics, clusters.means, "metrics");
}

}  // namespace moelab
