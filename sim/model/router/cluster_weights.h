#pragma once

#include <optional>
#include <span>

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

}  // namespace moelab
