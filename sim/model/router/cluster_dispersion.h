#pragma once

#include <vector>

#include "sim/base/view.h"

namespace moelab {

/// What the dispersion of a feature is: the mean absolute deviation (Nielsen et al. 2025, Definition 1), the
/// variance, or the interquartile range, the difference of the quantiles 3/4 and 1/4, each linear between the
/// two nearest of the n values (place (n − 1) p of the sorted ones).
enum class DispersionMeasure { mad, variance, iqr };

/// s_qk (E, d), the dispersion of feature q over the rows of cluster k: those of which k is the likeliest
/// expert, ties to the lower index. 0 for clusters of at most one row.
template <class Real>
class ClusterDispersion {
 public:
  ClusterDispersion(int clusters, int dim);

  /// Of rows x (n, d) with probabilities r (n, E).
  void measure(const View<const Real>& x, const View<const Real>& probabilities, DispersionMeasure measure);
  /// (E, d); zeros before the first measurement.
  const std::vector<double>& values() const { return values_; }

 private:
  void measure_quartiles(const View<const Real>& x);

  int dim_;
  std::vector<double> values_, means_;       // (E, d)
  std::vector<int> counts_;                  // (E)
  std::vector<const Real*> first_rows_;      // (E), of each cluster
  std::vector<std::size_t> cluster_of_row_;  // (n)
  std::vector<Real> column_;                 // a feature's values in a cluster
};

}  // namespace moelab
