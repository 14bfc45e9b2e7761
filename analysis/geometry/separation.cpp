#include "analysis/geometry/separation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

/// λ_max(R Σ R).
double largest_variance(const Matrix& covariance, const Matrix& root) {
  return symmetric_eigenvalues(root * covariance * root).maxCoeff();
}

}  // namespace

Separation minimum_separation(const GaussianClusters& clusters, const Metrics& metrics) {
  require_shapes(clusters, metrics);
  const int count = static_cast<int>(clusters.means.rows());
  if (count < 2) throw InvalidOption("means", "a separation needs at least two clusters");
  const double dim = static_cast<double>(clusters.means.cols());
  Separation nearest{std::numeric_limits<double>::infinity(), 0, 1};
  Vector widths(count), difference(clusters.means.cols());
  for (int i = 0; i < count; ++i) {
    const Matrix root = symmetric_root(metrics[static_cast<std::size_t>(i)], "metrics");
    for (int j = 0; j < count; ++j)
      widths[j] = largest_variance(clusters.covariances[static_cast<std::size_t>(j)], root);
    for (int j = 0; j < count; ++j) {
      if (j == i) continue;
      difference = clusters.means.row(i) - clusters.means.row(j);
      const double value = (root * difference).norm() / std::sqrt(dim * std::max(widths[i], widths[j]));
      if (value < nearest.value) nearest = {value, i, j};
    }
  }
  return nearest;
}

}  // namespace moelab
