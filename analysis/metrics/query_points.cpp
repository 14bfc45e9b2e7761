#include "analysis/metrics/query_points.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Points compared at a time, so that they stay in the cache for all queries.
constexpr Eigen::Index kBlock = 256;

}  // namespace

QueryPoints first_points(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                         std::int64_t count) {
  if (static_cast<std::size_t>(points.rows()) != experts.size())
    throw InvalidOption("experts", fmt::format("{} experts for {} points", experts.size(), points.rows()));
  QueryPoints queries;
  for (std::size_t row = 0; row < experts.size() && std::ssize(queries.rows) < count; ++row) {
    if (experts[row] < 0) continue;
    queries.rows.push_back(static_cast<std::int64_t>(row));
    queries.experts.push_back(experts[row]);
  }
  queries.points = points(queries.rows, Eigen::all);
  return queries;
}

Matrix distances(const Eigen::Ref<const Matrix>& queries, const Eigen::Ref<const Matrix>& points) {
  Matrix result(queries.rows(), points.rows());
  for (Eigen::Index i = 0; i < queries.rows(); ++i) {
    for (Eigen::Index j = 0; j < points.rows(); ++j)
      result(i, j) = std::sqrt((queries.row(i) - points.row(j)).squaredNorm());
  }
  return result;
}

void visit_distances(const QueryPoints& queries, const Eigen::Ref<const Matrix>& points,
                     std::span<const int> experts, const DistanceBlock& consume) {
  for (Eigen::Index first = 0; first < points.rows(); first += kBlock) {
    const Eigen::Index count = std::min(kBlock, points.rows() - first);
    consume(distances(queries.points, points.middleRows(first, count)),
            experts.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  }
}

}  // namespace moelab
