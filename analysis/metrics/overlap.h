#pragma once

/// How separate the inputs are that different experts serve, and how alike the experts' outputs are (Guo et
/// al. 2025). Overlap and silhouette use `serving`; rows that no expert serves are left out. Similarities of
/// outputs use no routing.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

// Distances between points, block by block.

/// The rows of a set that are compared with all of its rows: all of them, or a sample.
struct QueryPoints {
  std::vector<std::int64_t> rows;  ///< ascending
  Matrix points;                   ///< (m, d), the points of these rows
  std::vector<int> experts;        ///< (m), the experts that serve them

  std::size_t size() const { return rows.size(); }
};

/// The first `count` served rows (all, where there are less) of points (n, d) with their serving experts (n),
/// −1 for none. Throws InvalidOption unless there are as many experts as points.
QueryPoints first_points(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                         std::int64_t count);

/// ‖q_i − x_j‖ (m, n) for queries (m, d) and points (n, d). Computed from differences, so equal points are at
/// distance exactly 0.
Matrix distances(const Eigen::Ref<const Matrix>& queries, const Eigen::Ref<const Matrix>& points);

/// Takes the next rows of the set: their distances to the queries (m, block) and their experts (block).
using DistanceBlock = std::function<void(const Matrix&, std::span<const int>)>;

/// Calls `consume` with the distances of all points (n, d), in blocks and in order.
void visit_distances(const QueryPoints& queries, const Eigen::Ref<const Matrix>& points,
                     std::span<const int> experts, const DistanceBlock& consume);

// Overlap.

/// The k nearest of all n served points to each query, block by block. Memory O(m k).
class NearestNeighbours {
 public:
  NearestNeighbours(const QueryPoints& queries, int k = 10);
  /// Adds the next block of a DistanceBlock; experts are −1 for none.
  void add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts);
  /// For each query (m): of its k' = min(k, n − 1) nearest other points, the share that another expert
  /// serves. Of equally distant points the earlier row is nearer. Empty when n < 2, NaN where a distance is
  /// not finite.
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

/// Mean over all points (n, d) of the share of their k nearest neighbours that another expert serves. It is 0
/// when experts serve separate regions, and about 1 − Σ_e (n_e/n)² when expert and place are independent.
/// None for less than two served points. `experts` (n) are the serving ones, −1 for none; throws
/// InvalidOption unless there are as many as points.
std::optional<double> expert_overlap(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                                     int k = 10);

// Silhouette of points labelled by their experts (Rousseeuw 1987).

/// s_i = (b_i − a_i) / max(a_i, b_i), with a_i the mean distance to the other points of the own expert and
/// b_i the smallest mean distance to the points of another expert. s_i = 0 for the only point of an expert.
/// Block by block, memory O(m E).
class Silhouette {
 public:
  /// Experts are 0 … experts − 1.
  Silhouette(const QueryPoints& queries, int experts);
  /// Adds the next block of a DistanceBlock; experts are −1 for none.
  void add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts);
  /// s of each query (m); empty when less than two experts have points.
  std::vector<double> coefficients() const;

 private:
  const QueryPoints& queries_;
  Matrix sums_;                       // (m, E), distances to the points of each expert
  std::vector<std::int64_t> counts_;  // (E)
};

/// Mean of s_i over all points (n, d), in [−1, 1]. None when less than two experts have points. `experts` (n)
/// are the serving ones, −1 for none; throws InvalidOption unless there are as many as points.
std::optional<double> silhouette(const Eigen::Ref<const Matrix>& points, std::span<const int> experts);

// Outputs of the experts. Guo et al. 2025: experts grow alike under a balance loss alone.

/// For each row (n) of expert outputs (n, E·o), expert after expert: the mean cosine between the outputs of
/// two different experts, over all E(E − 1) pairs. An output of zero has cosine 0 with every other one.
/// Throws InvalidOption for less than two experts, or unless E divides the columns.
Vector expert_output_similarities(const Eigen::Ref<const Matrix>& outputs, int experts);

/// How differently the experts answer the task's error: for each row (n) the variance over experts j (ddof 0)
/// of g^T x̃_j, with outputs x̃ (n, E·o) and error gradients g (n, o'). The first o' ≤ o columns of an expert's
/// output count. Throws InvalidOption as above, when the rows differ, or when o' > o.
Vector task_signal_variances(const Eigen::Ref<const Matrix>& outputs, int experts,
                             const Eigen::Ref<const Matrix>& gradients);

/// Sums over rows of Var_j(p_ij) and mean_j p_ij², p_ij = g_i^T x̃_ij, over the experts j that a row selects.
/// Rows with less than two selected experts are skipped. The quotient of the sums is in [0, 1] and free of
/// scale.
struct SignalSpread {
  double variance = 0, square = 0;
};
/// The sums of a block of rows, with `selected` (n·E), 1 or 0. Throws InvalidOption as above.
SignalSpread selected_signal_spread(const Eigen::Ref<const Matrix>& outputs, int experts,
                                    const Eigen::Ref<const Matrix>& gradients,
                                    std::span<const unsigned char> selected);

}  // namespace moelab
