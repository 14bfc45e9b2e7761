#include "analysis/metrics/layer_rows.h"

#include <algorithm>
#include <utility>

#include "analysis/metrics/routing.h"

namespace moelab {

std::vector<int> LayerRows::likeliest(int k) {
  std::vector<int> all;
  visit([&](const RowBlock& block) {
    std::vector<int> sets = topk_assignment(block.probabilities, k);
    if (all.empty())
      all = std::move(sets);
    else
      all.insert(all.end(), sets.begin(), sets.end());
  });
  return all;
}

std::optional<double> LayerRows::co_activation() {
  return moelab::co_activation(selected(), experts());
}

namespace {

/// The place of each sample's set of labels in the order of first appearance.
std::vector<int> labels_of_sets(const std::vector<int>& labels, std::size_t parts) {
  std::map<std::vector<int>, int> place;
  std::vector<int> sets;
  sets.reserve(labels.size() / parts);
  for (std::size_t at = 0; at < labels.size(); at += parts) {
    std::vector<int> set(labels.begin() + static_cast<std::ptrdiff_t>(at),
                         labels.begin() + static_cast<std::ptrdiff_t>(at + parts));
    std::sort(set.begin(), set.end());
    sets.push_back(place.try_emplace(std::move(set), static_cast<int>(place.size())).first->second);
  }
  return sets;
}

}  // namespace

std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels) {
  if (layout.sequences || layout.labels == 1) return {{"", {labels}}};
  const std::size_t parts = static_cast<std::size_t>(layout.labels);
  const std::size_t rows = labels.size() / parts;
  ClusterLabels each{"_per_atom", {}};
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<int>& column = each.labels.emplace_back();
    column.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) column.push_back(labels[row * parts + part]);
  }
  return {{"", {labels_of_sets(labels, parts)}}, std::move(each), {"_overall", {std::vector<int>(rows, 0)}}};
}

}  // namespace moelab
