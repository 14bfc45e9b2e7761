#include "analysis/geometry/misassignment.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {

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

WorstPair worst_pair(const Matrix& pairwise) {
  if (pairwise.rows() < 2) throw InvalidOption("means", "a pair needs at least two clusters");
  Eigen::Index from = 0, to = 0;
  const double probability = pairwise.maxCoeff(&from, &to);
  return {probability, static_cast<int>(from), static_cast<int>(to)};
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

}  // namespace moelab
