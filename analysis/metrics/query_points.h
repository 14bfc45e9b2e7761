#pragma once

/// A set of points, each with its `serving` expert, held block by block against some or all of its own rows.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/base/types.h"

namespace moelab {

/// The rows of a set that are compared with all of its rows: all of them, or a sample.
struct QueryPoints {
  std::vector<std::int64_t> rows;  ///< ascending
  Matrix points;                   ///< (m, d), the points of these rows
  std::vector<int> experts;        ///< (m), the experts that serve them

  std::size_t size() const { return rows.size(); }
};

/// The first `count` served rows (all, where there are less) of points (n, d) with the experts (n) that serve
/// them, −1 for none. Throws InvalidOption when there are not as many experts as points.
QueryPoints first_points(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                         std::int64_t count);

/// ‖q_i − x_j‖, (m, n), for queries (m, d) and points (n, d). Taken from differences, so that equal points
/// are at distance exactly 0.
Matrix distances(const Eigen::Ref<const Matrix>& queries, const Eigen::Ref<const Matrix>& points);

/// Takes the next rows of the set: their distances to the queries, (m, block), and their experts, (block).
using DistanceBlock = std::function<void(const Matrix&, std::span<const int>)>;

/// Hands the distances of all points (n, d) to `consume`, in blocks and in order.
void visit_distances(const QueryPoints& queries, const Eigen::Ref<const Matrix>& points,
                     std::span<const int> experts, const DistanceBlock& consume);

}  // namespace moelab
