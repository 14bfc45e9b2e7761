#include "analysis/metrics/sparsity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "analysis/metrics/load.h"
#include "sim/base/error.h"

namespace moelab {

double entropy(std::span<const double> distribution) {
  double sum = 0;
  for (const double probability : distribution)
    // Not `> 0`, which NaN is not either: the entropy of what is not a number would be 0.
    if (!(probability <= 0)) sum -= probability * std::log(probability);
  return sum;
}

ClusterRouting::ClusterRouting(Eigen::Index experts) : experts_(experts) {}

ClusterRouting::ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels)
    : ClusterRouting(probabilities.cols()) {
  add(probabilities, labels);
}

ClusterRouting::ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
                               std::span<const int> labels)
    : ClusterRouting(probabilities.cols()) {
  add(probabilities, serving, labels);
}

ClusterRouting::Cluster& ClusterRouting::cluster_of(int label) {
  const auto [place, is_new] = index_of_label_.try_emplace(label, clusters_.size());
  if (is_new) {
    const std::vector<std::int64_t> no_counts(static_cast<std::size_t>(experts_), 0);
    clusters_.push_back({0, 0, Vector::Zero(experts_), no_counts});
  }
  return clusters_[place->second];
}

void ClusterRouting::add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels) {
  require_columns(probabilities);
  add(probabilities, top1_assignment(probabilities), labels);
}

void ClusterRouting::add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
                         std::span<const int> labels) {
  require_columns(probabilities);
  if (static_cast<std::size_t>(probabilities.rows()) != labels.size())
    throw InvalidOption("labels", fmt::format("{} labels for {} rows of routing probabilities", labels.size(),
                                              probabilities.rows()));
  if (serving.size() != labels.size())
    throw InvalidOption("serving", fmt::format("{} experts for {} rows of routing probabilities",
                                               serving.size(), labels.size()));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    Cluster& cluster = cluster_of(labels[static_cast<std::size_t>(row)]);
    const double* routing = &probabilities.coeffRef(row, 0);
    cluster.probability_sum += Eigen::Map<const Vector>(routing, experts_);
    ++cluster.rows;
    const int expert = serving[static_cast<std::size_t>(row)];
    if (expert >= experts_)
      throw InvalidOption("serving", fmt::format("expert {}, but there are {} experts", expert, experts_));
    if (expert < 0) continue;
    ++cluster.serving_counts[static_cast<std::size_t>(expert)];
    ++cluster.served_rows;
    ++served_rows_;
  }
  rows_ += probabilities.rows();
}

void ClusterRouting::require_columns(const Eigen::Ref<const Matrix>& probabilities) const {
  if (probabilities.cols() != experts_ || experts_ == 0)
    throw InvalidOption("probs",
                        fmt::format("{} columns, but there are {} experts", probabilities.cols(), experts_));
}

void ClusterRouting::require_rows() const {
  if (rows_ == 0) throw InvalidOption("probs", "empty; metrics of clusters need at least one row");
}

Matrix ClusterRouting::mean_routing() const {
  Matrix mean(clusters(), experts_);
  for (Eigen::Index c = 0; c < clusters(); ++c) {
    const Cluster& cluster = clusters_[static_cast<std::size_t>(c)];
    mean.row(c) = cluster.probability_sum.transpose() / static_cast<double>(cluster.rows);
  }
  return mean;
}

Vector ClusterRouting::cluster_entropies() const {
  require_rows();
  const Matrix mean = mean_routing();
  Vector entropies(clusters());
  for (Eigen::Index c = 0; c < clusters(); ++c)
    entropies(c) = entropy({&mean.coeffRef(c, 0), static_cast<std::size_t>(experts_)});
  return entropies;
}

double ClusterRouting::cluster_entropy() const {
  return cluster_entropies().mean();
}

double ClusterRouting::effective_experts() const {
  return cluster_entropies().array().exp().mean();
}

std::optional<double> ClusterRouting::top1_cluster_purity() const {
  require_rows();
  if (served_rows_ == 0) return std::nullopt;
  std::int64_t majority_rows = 0;
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(experts_); ++expert) {
    std::int64_t largest = 0;
    for (const Cluster& cluster : clusters_) largest = std::max(largest, cluster.serving_counts[expert]);
    majority_rows += largest;
  }
  return static_cast<double>(majority_rows) / static_cast<double>(served_rows_);
}

std::optional<double> ClusterRouting::top1_cluster_concentration() const {
  require_rows();
  double sum = 0;
  std::int64_t clusters = 0;
  for (const Cluster& cluster : clusters_) {
    if (cluster.served_rows == 0) continue;
    const std::int64_t largest =
        *std::max_element(cluster.serving_counts.begin(), cluster.serving_counts.end());
    sum += static_cast<double>(largest) / static_cast<double>(cluster.served_rows);
    ++clusters;
  }
  if (clusters == 0) return std::nullopt;
  return sum / static_cast<double>(clusters);
}

ContingencyTable ClusterRouting::top1_table() const {
  require_rows();
  const auto is_served = [](const Cluster& cluster) { return cluster.served_rows > 0; };
  ContingencyTable table(std::count_if(clusters_.begin(), clusters_.end(), is_served), experts_);
  Eigen::Index row = 0;
  for (const Cluster& cluster : clusters_) {
    if (!is_served(cluster)) continue;
    std::copy(cluster.serving_counts.begin(), cluster.serving_counts.end(), table.row(row++).begin());
  }
  return table;
}

}  // namespace moelab
