#include "analysis/metrics/geometry.h"

#include <fmt/core.h>

#include <boost/math/constants/constants.hpp>
#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "sim/base/numerics.h"

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

void require_labels(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters) {
  if (static_cast<Eigen::Index>(labels.size()) != x.rows())
    throw InvalidOption("labels", fmt::format("{} labels for {} rows", labels.size(), x.rows()));
  for (const int label : labels) {
    if (label < 0 || label >= clusters)
      throw InvalidOption("labels", fmt::format("{}, but there are {} clusters", label, clusters));
  }
}

/// Turns sums over clusters into means. Clusters without points keep 0.
void divide_by_counts(Matrix& sums, const std::vector<int>& counts) {
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] > 0) sums.row(static_cast<Eigen::Index>(k)) /= counts[k];
  }
}

void require_shapes(const MixtureSamples& batch) {
  const Eigen::Index rows = batch.features.rows(), experts = batch.probabilities.cols();
  if (rows == 0) throw InvalidOption("features", "empty; a mean over samples needs at least one");
  const auto require = [](const char* name, const Matrix& array, Eigen::Index n, Eigen::Index columns) {
    if (array.rows() != n || array.cols() != columns)
      throw InvalidOption(
          name, fmt::format("shape ({}, {}), expected ({}, {})", array.rows(), array.cols(), n, columns));
  };
  require("probabilities", batch.probabilities, rows, experts);
  require("targets", batch.targets, rows, batch.targets.cols());
  require("outputs", batch.outputs, rows, experts * batch.targets.cols());
}

/// One sample: a_e = o_e − f (E, o) and ρ = f − y (o).
struct SampleOutputs {
  Matrix deviations;
  Vector residual;
};

SampleOutputs sample_outputs(const MixtureSamples& batch, Eigen::Index i) {
  const Eigen::Map<const Matrix> outputs(batch.outputs.row(i).data(), batch.probabilities.cols(),
                                         batch.targets.cols());
  const Vector mixed = outputs.transpose() * batch.probabilities.row(i).transpose();
  return {outputs.rowwise() - mixed.transpose(), mixed - batch.targets.row(i).transpose()};
}

/// B (E, E): ∂²‖f − y‖²/∂γ² of one sample in its scores γ = W z.
Matrix score_curvature(const SampleOutputs& sample, const Vector& r, RouterCurvature curvature) {
  const Matrix weighted = r.asDiagonal() * sample.deviations;
  Matrix result = 2 * weighted * weighted.transpose();
  if (curvature == RouterCurvature::gauss_newton) return result;
  const Vector pull = weighted * sample.residual;  // r_e ρᵀa_e
  result -= 2 * (pull * r.transpose() + r * pull.transpose());
  result.diagonal() += 2 * pull;
  return result;
}

int rows_per_expert(const Matrix& hessian, int experts) {
  const int size = static_cast<int>(hessian.rows());
  if (experts < 1 || hessian.rows() != hessian.cols() || size % experts != 0)
    throw InvalidOption("hessian", fmt::format("shape ({}, {}) does not fit {} experts", hessian.rows(),
                                               hessian.cols(), experts));
  return size / experts;
}

}  // namespace

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

Conditioning conditioning(const Matrix& symmetric) {
  if (symmetric.rows() == 0 || symmetric.rows() != symmetric.cols())
    throw InvalidOption("matrix", fmt::format("shape ({}, {}); eigenvalues need a square matrix",
                                              symmetric.rows(), symmetric.cols()));
  const Vector values = symmetric_eigenvalues(symmetric);
  const Vector sizes = values.cwiseAbs();
  const double rounding =
      static_cast<double>(values.size()) * std::numeric_limits<double>::epsilon() * sizes.maxCoeff();
  const double condition =
      sizes.minCoeff() == 0 ? std::numeric_limits<double>::infinity() : sizes.maxCoeff() / sizes.minCoeff();
  return {condition, values.maxCoeff(), values.minCoeff(),
          static_cast<int>((values.array() < -rounding).count())};
}

Matrix transformed_covariance(const Matrix& covariance, const Vector& weights) {
  return weights.asDiagonal() * covariance * weights.asDiagonal();
}

DispersionTable variances(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters) {
  require_labels(x, labels, clusters);
  DispersionTable table{Matrix::Zero(clusters, x.cols()),
                        std::vector<int>(static_cast<std::size_t>(clusters), 0)};
  // Measured from the first point of its cluster: a constant feature has dispersion exactly 0.
  Matrix origins = Matrix::Zero(clusters, x.cols()), means = Matrix::Zero(clusters, x.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const int k = labels[static_cast<std::size_t>(i)];
    if (table.counts[static_cast<std::size_t>(k)]++ == 0) origins.row(k) = x.row(i);
    means.row(k) += x.row(i) - origins.row(k);
  }
  divide_by_counts(means, table.counts);
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const int k = labels[static_cast<std::size_t>(i)];
    table.values.row(k) += (x.row(i) - origins.row(k) - means.row(k)).cwiseAbs2();
  }
  divide_by_counts(table.values, table.counts);
  return table;
}

Matrix feature_weights(const DispersionTable& table, const FeatureWeights& weights) {
  Matrix found(table.values.rows(), table.values.cols());
  const std::size_t dim = static_cast<std::size_t>(found.cols());
  for (Eigen::Index k = 0; k < found.rows(); ++k) {
    const std::vector<double> row = weights({table.values.row(k).data(), dim});
    found.row(k) = Eigen::Map<const Eigen::RowVectorXd>(row.data(), found.cols());
  }
  return found;
}

double boundary_distance(const Vector& difference, const Matrix& covariance, const Matrix& metric) {
  const Vector direction = metric * difference;
  const double squared_distance = difference.dot(direction);
  if (squared_distance == 0) return 0;
  return squared_distance / (2 * std::sqrt(direction.dot(covariance * direction)));
}

double misassignment_probability(const Vector& difference, const Matrix& covariance, const Matrix& metric) {
  constexpr double kRootTwo = boost::math::constants::root_two<double>();
  return std::erfc(boundary_distance(difference, covariance, metric) / kRootTwo) / 2;
}

Matrix pairwise_misassignment(const GaussianClusters& clusters, const Metrics& metrics) {
  require_shapes(clusters, metrics);
  const Eigen::Index count = clusters.means.rows();
  Matrix pairwise = Matrix::Zero(count, count);
  Vector difference(clusters.means.cols());
  for (Eigen::Index i = 0; i < count; ++i) {
    const std::size_t own = static_cast<std::size_t>(i);
    for (Eigen::Index j = 0; j < count; ++j) {
      if (j == i) continue;
      difference = clusters.means.row(j) - clusters.means.row(i);
      pairwise(i, j) = misassignment_probability(difference, clusters.covariances[own], metrics[own]);
    }
  }
  return pairwise;
}

Vector union_bounds(const Matrix& pairwise) {
  return pairwise.rowwise().sum().cwiseMin(1.0);
}

DrawnShare drawn_misassignment(const GaussianClusters& clusters, const Metrics& metrics, int cluster,
                               int draws, Engine& engine) {
  require_shapes(clusters, metrics);
  if (cluster < 0 || cluster >= clusters.means.rows())
    throw InvalidOption("cluster",
                        fmt::format("{}, but there are {} clusters", cluster, clusters.means.rows()));
  if (draws < 1) throw InvalidOption("draws", fmt::format("{} is not positive", draws));
  const std::size_t own = static_cast<std::size_t>(cluster);
  // In the coordinates M^{1/2} x the metric is the Euclidean one.
  const Matrix metric_root = symmetric_root(metrics[own], "metrics");
  const Matrix spread = symmetric_root(clusters.covariances[own], "covariances") * metric_root;
  const Matrix centres = clusters.means * metric_root;
  Vector normals(clusters.means.cols()), point(clusters.means.cols());
  int wrong = 0;
  for (int draw = 0; draw < draws; ++draw) {
    fill_normal(engine, 1.0, normals.data(), static_cast<std::size_t>(normals.size()));
    point.noalias() = spread.transpose() * normals;
    point += centres.row(cluster).transpose();
    Eigen::Index nearest = 0;
    (centres.rowwise() - point.transpose()).rowwise().squaredNorm().minCoeff(&nearest);
    if (nearest != cluster) ++wrong;
  }
  const double count = draws, within = (wrong + 1.0) / (count + 2.0);
  return {wrong / count, std::sqrt(within * (1 - within) / count)};
}

PrincipalComponents principal_components(const Eigen::Ref<const Matrix>& x, int components) {
  if (x.rows() == 0) throw InvalidOption("x", "has no rows");
  if (components < 1 || components > x.cols()) {
    throw InvalidOption("components",
                        fmt::format("got {}, needs 1 to {}, the columns of x", components, x.cols()));
  }
  const Vector centre = x.colwise().mean();
  const Matrix centred = x.rowwise() - centre.transpose();
  const Matrix covariance = centred.transpose() * centred / static_cast<double>(x.rows());
  const SymmetricEigen eigen = symmetric_eigen(covariance);
  // Eigenvalues ascend.
  Matrix directions = eigen.vectors.rightCols(components).rowwise().reverse();
  for (Eigen::Index k = 0; k < components; ++k) {
    Eigen::Index largest = 0;
    directions.col(k).cwiseAbs().maxCoeff(&largest);
    if (directions(largest, k) < 0) directions.col(k) *= -1;
  }
  const double total = covariance.trace();
  // Rounding may leave a variance of zero below it.
  const Vector variances = eigen.values.tail(components).reverse().cwiseMax(0);
  return {centred * directions, total > 0 ? Vector(variances / total) : Vector(Vector::Zero(components)),
          centre, directions};
}

Matrix router_hessian(const MixtureSamples& batch, RouterCurvature curvature) {
  require_shapes(batch);
  const Eigen::Index dim = batch.features.cols(), experts = batch.probabilities.cols();
  Matrix hessian = Matrix::Zero(experts * dim, experts * dim);
  Matrix square(dim, dim);
  for (Eigen::Index i = 0; i < batch.features.rows(); ++i) {
    const Matrix curvatures =
        score_curvature(sample_outputs(batch, i), batch.probabilities.row(i).transpose(), curvature);
    square.noalias() = batch.features.row(i).transpose() * batch.features.row(i);
    for (Eigen::Index e = 0; e < experts; ++e) {
      for (Eigen::Index k = 0; k < experts; ++k)
        hessian.block(e * dim, k * dim, dim, dim) += curvatures(e, k) * square;
    }
  }
  return hessian / static_cast<double>(batch.features.rows());
}

Matrix expert_block(const Matrix& hessian, int experts, int expert) {
  const int dim = rows_per_expert(hessian, experts);
  if (expert < 0 || expert >= experts)
    throw InvalidOption("expert", fmt::format("{}, but there are {} experts", expert, experts));
  return hessian.block(expert * dim, expert * dim, dim, dim);
}

Matrix router_gradient(const MixtureSamples& batch) {
  require_shapes(batch);
  Matrix gradient = Matrix::Zero(batch.probabilities.cols(), batch.features.cols());
  for (Eigen::Index i = 0; i < batch.features.rows(); ++i) {
    const SampleOutputs sample = sample_outputs(batch, i);
    const Vector pull = sample.deviations * sample.residual;
    const Vector slope = 2 * batch.probabilities.row(i).transpose().cwiseProduct(pull);
    gradient += slope * batch.features.row(i);
  }
  return gradient / static_cast<double>(batch.features.rows());
}

}  // namespace moelab
