#include "analysis/metrics/silhouette.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace moelab {
Silhouette::Silhouette(const QueryPoints& queries, int experts)
    : queries_(queries),
      sums_(Matrix::Zero(static_cast<Eigen::Index>(queries.rows.size()), experts)),
      counts_(static_cast<std::size_t>(experts), 0) {}

void Silhouette::add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts) {
  for (Eigen::Index query = 0; query < sums_.rows(); ++query) {
    for (std::size_t j = 0; j < experts.size(); ++j) {
      if (experts[j] >= 0)
        sums_(query, experts[j]) += distances_to_queries(query, static_cast<Eigen::Index>(j));
    }
  }
  for (const int expert : experts) {
    if (expert >= 0) ++counts_[static_cast<std::size_t>(expert)];
  }
}

std::vector<double> Silhouette::coefficients() const {
  if (std::count_if(counts_.begin(), counts_.end(), [](std::int64_t count) { return count > 0; }) < 2)
    return {};
  std::vector<double> coefficients;
  for (Eigen::Index query = 0; query < sums_.rows(); ++query) {
    const int own = queries_.experts[static_cast<std::size_t>(query)];
    const std::int64_t others = counts_[static_cast<std::size_t>(own)] - 1;
    double nearest = std::numeric_limits<double>::infinity();
    for (Eigen::Index expert = 0; expert < sums_.cols(); ++expert) {
      const std::int64_t count = counts_[static_cast<std::size_t>(expert)];
      if (expert != own && count > 0)
        nearest = std::min(nearest, sums_(query, expert) / static_cast<double>(count));
    }
    const double within = others > 0 ? sums_(query, own) / static_cast<double>(others) : 0;
    const double larger = std::max(within, nearest);
    coefficients.push_back(others > 0 && larger > 0 ? (nearest - within) / larger : 0);
  }
  return coefficients;
}

std::optional<double> silhouette(const Eigen::Ref<const Matrix>& points, std::span<const int> experts) {
  const QueryPoints queries = first_points(points, experts, points.rows());
  if (experts.empty()) return std::nullopt;
  Silhouette measured(queries, *std::max_element(experts.begin(), experts.end()) + 1);
  visit_distances(queries, points, experts, [&](const Matrix& block, std::span<const int> block_experts) {
    measured.add(block, block_experts);
  });
  const std::vector<double> coefficients = measured.coefficients();
  if (coefficients.empty()) return std::nullopt;
  return std::accumulate(coefficients.begin(), coefficients.end(), 0.0) /
         static_cast<double>(coefficients.size());
}

}  // namespace moelab
