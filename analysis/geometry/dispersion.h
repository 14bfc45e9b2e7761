#pragma once

/// How widely each cluster spreads along each feature, and the feature weights that follow from it (Nielsen
/// et al. 2025, Definition 1).

#include <functional>
#include <span>
#include <vector>

#include "sim/base/types.h"

namespace moelab {

/// Dispersions s_kq of clusters along features. A cluster without points, or with one, has dispersion 0.
struct DispersionTable {
  Matrix values;            ///< (k, d)
  std::vector<int> counts;  ///< points of each cluster (k)
};

/// Mean absolute deviation from the cluster's mean, (1/N_k) Σ_i |x_iq − x̄_q|. x (n, d), labels (n) in
/// 0 … k − 1. Throws InvalidOption where there are not n labels, or one is out of range.
DispersionTable mean_absolute_deviations(const Eigen::Ref<const Matrix>& x, std::span<const int> labels,
                                         int clusters);

/// Variance, (1/N_k) Σ_i (x_iq − x̄_q)² (ddof 0): half of the pairwise dispersion N_k^{−2} Σ_ij ρ_ijq of
/// Theorem 1 for ρ_ijq = (x_iq − x_jq)².
DispersionTable variances(const Eigen::Ref<const Matrix>& x, std::span<const int> labels, int clusters);

/// From the dispersions of one cluster to weights of its features: sim/base/feature_weights.h has two.
using FeatureWeights = std::function<std::vector<double>(std::span<const double> dispersion)>;

/// Row by row, (k, d).
Matrix feature_weights(const DispersionTable& table, const FeatureWeights& weights);

}  // namespace moelab
