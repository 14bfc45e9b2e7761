#include "analysis/geometry/dispersion.h"

#include <fmt/core.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

void require_labels(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters) {
  if (static_cast<Eigen::Index>(labels.size()) != x.rows())
    throw InvalidOption("labels", fmt::format("{} labels for {} rows", labels.size(), x.rows()));
  for (const int label : labels) {
    if (label < 0 || label >= clusters)
      throw InvalidOption("labels", fmt::format("{}, but there are {} clusters", label, clusters));
  }
}

/// Sums over clusters → means; those of clusters without points stay 0.
void divide_by_counts(Matrix& sums, const std::vector<int>& counts) {
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] > 0) sums.row(static_cast<Eigen::Index>(k)) /= counts[k];
  }
}

enum class Measure { absolute, squared };

DispersionTable dispersions(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters,
                            Measure measure) {
  require_labels(x, labels, clusters);
  DispersionTable table{Matrix::Zero(clusters, x.cols()),
                        std::vector<int>(static_cast<std::size_t>(clusters), 0)};
  // Measured from the first point of its cluster, a constant feature has dispersion exactly 0.
  Matrix origins = Matrix::Zero(clusters, x.cols()), means = Matrix::Zero(clusters, x.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const int k = labels[static_cast<std::size_t>(i)];
    if (table.counts[static_cast<std::size_t>(k)]++ == 0) origins.row(k) = x.row(i);
    means.row(k) += x.row(i) - origins.row(k);
  }
  divide_by_counts(means, table.counts);
  Eigen::ArrayXd deviation(x.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const int k = labels[static_cast<std::size_t>(i)];
    deviation = x.row(i) - origins.row(k) - means.row(k);
    if (measure == Measure::absolute)
      table.values.row(k).array() += deviation.transpose().abs();
    else
      table.values.row(k).array() += deviation.transpose().square();
  }
  divide_by_counts(table.values, table.counts);
  return table;
}

}  // namespace

DispersionTable mean_absolute_deviations(const Eigen::Ref<const Matrix>& x, std::span<const int> labels,
                                         int clusters) {
  return dispersions(x, labels, clusters, Measure::absolute);
}

DispersionTable variances(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters) {
  return dispersions(x, labels, clusters, Measure::squared);
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

}  // namespace moelab
