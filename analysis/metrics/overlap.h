#pragma once

/// Expert overlap: how many neighbours of a point are served by another expert (Guo et al. 2025). Uses
/// `serving`; points that no expert serves are left out.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/metrics/query_points.h"

namespace moelab {

/// The k nearest of all n served points to each query, found block by block; memory O(m k).
class NearestNeighbours {
 public:
  NearestNeighbours(const QueryPoints& queries, int k = 10);
  /// The next block of a DistanceBlock; experts as in QueryPoints, −1 for none.
  void add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts);
  /// For each query the share, among its k' = min(k, n − 1) nearest other points, of those with another
  /// expert than its own; of equally distant points the earlier row is nearer. (m), empty when n = 1, NaN
  /// where a distance is not finite.
  std::vector<double> other_expert_shares() const;

 private:
  struct Neighbour {
    double distance;
    std::int64_t row;
    int expert;
    bool operator<(const Neighbour& other) const {
      return std::pair(distance, row) < std::pair(other.distance, other.row);
    }
  };
  const QueryPoints& queries_;
  std::size_t k_;
  std::int64_t rows_ = 0, served_rows_ = 0;
  bool finite_ = true;                           // every distance so far
  std::vector<std::vector<Neighbour>> nearest_;  // (m), heaps with the farthest on top
};

/// Mean over all points (n, d) of the share of their k nearest neighbours with another expert: 0 when experts
/// serve separate regions, about 1 − Σ_e (n_e/n)² when expert and place have nothing to do with each other.
/// None for less than two served points. `experts` (n) are the serving ones, −1 for none; throws
/// InvalidOption when there are not as many as points.
std::optional<double> expert_overlap(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                                     int k = 10);

}  // namespace moelab
