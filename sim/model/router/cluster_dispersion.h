#pragma once

#include <vector>

#include "sim/base/view.h"

namespace moelab {

/// s_qk (E, d), the mean absolute deviation (Nielsen et al. 2025, Definition 1) or the variance of feature q
/// over the rows of cluster k: those of which k is the likeliest expert, ties to the lower index. 0 for
/// clusters of at most one row.
template <class Real>
class ClusterDispersion {
 public:
  ClusterDispersion(int clusters, int dim);

  /// Of rows x (n, d) with probabilities r (n, E).
  void measure(const View<const Real>& x, const View<const Real>& probabilities, bool variance);
  /// (E, d); zeros before the first measurement.
  const std::vector<double>& values() const { return values_; }

 private:
  int dim_;
  std::vector<double> values_, means_;       // (E, d)
  std::vector<int> counts_;                  // (E)
  std::vector<const Real*> first_rows_;      // (E), of each cluster
  std::vector<std::size_t> cluster_of_row_;  // (n)
};

}  // namespace moelab
