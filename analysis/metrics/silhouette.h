#pragma once

/// Silhouette of points labelled by their experts (Rousseeuw 1987; used by Guo et al. 2025). Uses `serving`;
/// points that no expert serves are left out.

#include <optional>
#include <span>
#include <vector>

#include "analysis/metrics/query_points.h"

namespace moelab {

/// s_i = (b_i − a_i) / max(a_i, b_i), a_i the mean distance to the other points of the own expert, b_i the
/// smallest mean distance to the points of another expert. s_i = 0 for the only point of an expert. Block by
/// block; memory O(m E).
class Silhouette {
 public:
  /// Experts are 0 … experts − 1.
  Silhouette(const QueryPoints& queries, int experts);
  /// The next block of a DistanceBlock; experts as in QueryPoints, −1 for none.
  void add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts);
  /// s of each query, (m); empty when less than two experts have points.
  std::vector<double> coefficients() const;

 private:
  const QueryPoints& queries_;
  Matrix sums_;                       // (m, E), distances to the points of each expert
  std::vector<std::int64_t> counts_;  // (E)
};

/// Mean of s_i over all points (n, d), in [−1, 1]. None when less than two experts have points. `experts` (n)
/// are the serving ones, −1 for none; throws InvalidOption when there are not as many as points.
std::optional<double> silhouette(const Eigen::Ref<const Matrix>& points, std::span<const int> experts);

}  // namespace moelab
