#include "analysis/metrics/agreement.h"

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

/// Σ binomial(n, 2) over the entries.
template <class Counts>
double pairs(const Counts& counts) {
  double sum = 0;
  for (const std::int64_t count : counts.reshaped())
    sum += static_cast<double>(count) * static_cast<double>(count - 1) / 2;
  return sum;
}

/// H of the counts as shares of `total`, nats.
template <class Counts>
double entropy_of(const Counts& counts, double total) {
  double sum = 0;
  for (const std::int64_t count : counts.reshaped()) {
    const double share = static_cast<double>(count) / total;
    if (count > 0) sum -= share * std::log(share);
  }
  return sum;
}

}  // namespace

std::optional<double> adjusted_rand_index(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum(), experts = table.colwise().sum();
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  const double together = pairs(table), in_clusters = pairs(clusters), in_experts = pairs(experts);
  const double all = total * (total - 1) / 2;
  // Equal partitions, among them the trivial ones for which the quotient is 0 / 0.
  if (together == in_clusters && together == in_experts) return 1;
  const double chance = in_clusters * in_experts / all;
  return (together - chance) / ((in_clusters + in_experts) / 2 - chance);
}

std::optional<double> normalized_mutual_information(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum(), experts = table.colwise().sum();
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  const double of_clusters = entropy_of(clusters, total), of_experts = entropy_of(experts, total);
  if (of_clusters + of_experts == 0) return 1;
  const double information = of_clusters + of_experts - entropy_of(table, total);
  return std::clamp(2 * information / (of_clusters + of_experts), 0.0, 1.0);
}

}  // namespace moelab
