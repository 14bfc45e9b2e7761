#include "analysis/metrics/own_experts.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Raises `best` to a partner with more rows. Partners come in the order of their numbers.
void raise(std::pair<int, std::int64_t>& best, int partner, std::int64_t rows) {
  if (rows > best.second) best = {partner, rows};
}

}  // namespace

std::map<int, bool> own_experts(std::span<const int> clusters, std::span<const int> serving) {
  if (clusters.size() != serving.size()) {
    throw InvalidOption(
        "serving", fmt::format("{} rows; needs one for each of {} labels", serving.size(), clusters.size()));
  }
  std::map<std::pair<int, int>, std::int64_t> rows;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    if (clusters[i] >= 0 && serving[i] >= 0) ++rows[{clusters[i], serving[i]}];
  }
  std::map<int, std::pair<int, std::int64_t>> expert_of, cluster_of;
  for (const auto& [pair, count] : rows) {
    raise(expert_of[pair.first], pair.second, count);
    raise(cluster_of[pair.second], pair.first, count);
  }
  std::map<int, bool> is_own;
  for (const auto& [cluster, best] : expert_of) is_own[cluster] = cluster_of[best.first].first == cluster;
  return is_own;
}

double expected_unsampled_clusters(const Eigen::Ref<const Vector>& shares, double experts) {
  return (1 - shares.array()).pow(experts).sum();
}

}  // namespace moelab
