#include "sim/model/router/cluster_dispersion.h"

#include <algorithm>
#include <cmath>

#include "sim/base/aligned.h"

namespace moelab {

template <class Real>
ClusterDispersion<Real>::ClusterDispersion(int clusters, int dim)
    : dim_(dim),
      values_(entries(clusters, dim)),
      means_(values_.size()),
      counts_(size(clusters)),
      first_rows_(size(clusters)) {}

template <class Real>
void ClusterDispersion<Real>::measure(const View<const Real>& x, const View<const Real>& probabilities,
                                      bool variance) {
  MOELAB_EXPECT(x.columns == dim_ && size(probabilities.columns) == counts_.size());
  MOELAB_EXPECT(x.rows == probabilities.rows);
  const std::size_t dim = size(dim_);
  cluster_of_row_.resize(size(x.rows));
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(means_.begin(), means_.end(), 0.0);
  std::fill(values_.begin(), values_.end(), 0.0);
  for (int row = 0; row < x.rows; ++row) {
    const Real* const r = probabilities.row(row);
    const std::size_t k = size(std::max_element(r, r + probabilities.columns) - r);
    cluster_of_row_[size(row)] = k;
    // Sums of differences from the cluster's first row: a constant feature has dispersion exactly 0.
    const Real* const own = x.row(row);
    if (counts_[k]++ == 0) first_rows_[k] = own;
    for (std::size_t q = 0; q < dim; ++q) {
      means_[k * dim + q] += static_cast<double>(own[q]) - static_cast<double>(first_rows_[k][q]);
    }
  }
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    for (std::size_t q = 0; q < dim && counts_[k] > 0; ++q) {
      means_[k * dim + q] = static_cast<double>(first_rows_[k][q]) + means_[k * dim + q] / counts_[k];
    }
  }
  for (int row = 0; row < x.rows; ++row) {
    const std::size_t start = cluster_of_row_[size(row)] * dim;
    const Real* const own = x.row(row);
    for (std::size_t q = 0; q < dim; ++q) {
      const double deviation = static_cast<double>(own[q]) - means_[start + q];
      values_[start + q] += variance ? deviation * deviation : std::abs(deviation);
    }
  }
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    for (std::size_t q = 0; q < dim && counts_[k] > 0; ++q) values_[k * dim + q] /= counts_[k];
  }
}

template class ClusterDispersion<float>;
template class ClusterDispersion<double>;

}  // namespace moelab
