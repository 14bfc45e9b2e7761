#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

/// How the weights M of all clusters follow from 1/s, with s_kq the dispersion of feature q in cluster k.
struct ClusterWeighting {
  /// The axis over which the weights have mean 1. `features`: the features of each cluster (Nielsen et al.
  /// 2025, Eq. 21). `clusters`: the clusters for each feature (its released language code). `global`: all
  /// entries (its released image code).
  enum class Normalize { features, clusters, global };
  Normalize normalize = Normalize::features;
  double guard = 0;                 ///< 1/(s + guard)
  std::optional<double> clip = {};  ///< largest weight, applied after the scaling to mean 1
};

/// weights (E, d) ← M from dispersions (E, d).
///
/// Without a guard, and with mean 1 over features, this equals inverse_dispersion_weights(). A dispersion of
/// at most 1e-12 times its cluster's largest carries no information. Its weight is 1, and the means omit it.
/// All weights are NaN if a dispersion is not finite.
void weigh_clusters(const ClusterWeighting& weighting, std::span<const double> dispersions, std::size_t dim,
                    std::span<double> weights);

/// weights (E, d) ← draws of N(1, 0.5²) with negative values clipped (Nielsen et al. 2025, Table 13). Here
/// they are scaled to mean 1 over the features of each cluster, like the other weights.
void draw_cluster_weights(Engine& engine, std::size_t dim, std::span<double> weights);

/// The dispersion of a feature. `mad`: the mean absolute deviation (Nielsen et al. 2025, Definition 1).
/// `variance`: the variance. `iqr`: the interquartile range, the difference of the quantiles p = 3/4 and p =
/// 1/4. A quantile interpolates linearly between the two nearest of the n sorted values, at place (n − 1) p.
enum class DispersionMeasure { mad, variance, iqr };

/// The dispersions s_qk (E, d) of feature q over the rows of cluster k. These are the rows whose argmax
/// expert is k; ties go to the lower index. 0 for clusters with at most one row.
template <class Real>
class ClusterDispersion {
 public:
  ClusterDispersion(int clusters, int dim);

  /// Measures the dispersions of rows x (n, d) with probabilities r (n, E).
  void measure(const View<const Real>& x, const View<const Real>& probabilities, DispersionMeasure measure);
  /// (E, d); zeros before the first measurement.
  const std::vector<double>& values() const { return values_; }

 private:
  void measure_quartiles(const View<const Real>& x);

  int dim_;
  std::vector<double> values_, means_;       // (E, d)
  std::vector<int> counts_;                  // (E)
  std::vector<const Real*> first_rows_;      // (E), the first row of each cluster
  std::vector<std::size_t> cluster_of_row_;  // (n)
  std::vector<Real> column_;                 // a feature's values in a cluster
};

}  // namespace moelab
