#include "analysis/metrics/overlap.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moelab {
NearestNeighbours::NearestNeighbours(const QueryPoints& queries, int k)
    : queries_(queries), k_(static_cast<std::size_t>(k)), nearest_(queries.rows.size()) {}

void NearestNeighbours::add(const Eigen::Ref<const Matrix>& distances_to_queries,
                            std::span<const int> experts) {
  if (!distances_to_queries.allFinite()) finite_ = false;
  for (std::size_t query = 0; query < nearest_.size(); ++query) {
    std::vector<Neighbour>& nearest = nearest_[query];
    for (std::size_t j = 0; j < experts.size(); ++j) {
      if (experts[j] < 0) continue;
      const Neighbour point = {
          distances_to_queries(static_cast<Eigen::Index>(query), static_cast<Eigen::Index>(j)),
          rows_ + static_cast<std::int64_t>(j), experts[j]};
      if (point.row == queries_.rows[query]) continue;
      if (nearest.size() == k_) {
        if (!(point < nearest.front())) continue;
        std::pop_heap(nearest.begin(), nearest.end());
        nearest.pop_back();
      }
      nearest.push_back(point);
      std::push_heap(nearest.begin(), nearest.end());
    }
  }
  rows_ += static_cast<std::int64_t>(experts.size());
  served_rows_ += std::count_if(experts.begin(), experts.end(), [](int expert) { return expert >= 0; });
}

std::vector<double> NearestNeighbours::other_expert_shares() const {
  std::vector<double> shares;
  if (served_rows_ < 2) return shares;
  // Of points at an infinite distance none is nearer than another.
  if (!finite_) return std::vector<double>(nearest_.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t query = 0; query < nearest_.size(); ++query) {
    const auto others = std::count_if(
        nearest_[query].begin(), nearest_[query].end(),
        [&](const Neighbour& neighbour) { return neighbour.expert != queries_.experts[query]; });
    shares.push_back(static_cast<double>(others) / static_cast<double>(nearest_[query].size()));
  }
  return shares;
}

std::optional<double> expert_overlap(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                                     int k) {
  const QueryPoints queries = first_points(points, experts, points.rows());
  NearestNeighbours neighbours(queries, k);
  visit_distances(queries, points, experts, [&](const Matrix& block, std::span<const int> block_experts) {
    neighbours.add(block, block_experts);
  });
  const std::vector<double> shares = neighbours.other_expert_shares();
  if (shares.empty()) return std::nullopt;
  return std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
}

}  // namespace moelab
