#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

/// How M of all clusters comes from 1/s, s_kq the dispersion of feature q in cluster k.
struct ClusterWeighting {
  /// Over what the weights have mean 1: the features of each cluster (Nielsen et al. 2025, Eq. 21), the
  /// clusters for each feature (its released language code), or all entries (its released image code).
  enum class Normalize { features, clusters, global };
  Normalize normalize = Normalize::features;
  double guard = 0;                 ///< 1/(s + guard)
  std::optional<double> clip = {};  ///< largest weight, after the mean was made 1
};

/// weights (E, d) ← M from dispersions (E, d). Without a guard, and with mean 1 over features, as
/// inverse_dispersion_weights(). Otherwise likewise: a dispersion of at most 1e-12 of its cluster's largest
/// says nothing; its weight is 1, and it is left out of the means. NaN throughout where a dispersion is not
/// finite.
void weigh_clusters(const ClusterWeighting& weighting, std::span<const double> dispersions, std::size_t dim,
                    std::span<double> weights);

/// weights (E, d) ← draws of N(1, .5²) with negatives clipped (Nielsen et al. 2025, Table 13), which here are
/// scaled to mean 1 over the features of each cluster, as those of the other spreads are.
void draw_cluster_weights(Engine& engine, std::size_t dim, std::span<double> weights);

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
