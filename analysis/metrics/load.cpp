#include "analysis/metrics/load.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.h"

namespace moelab {
namespace {

double total_load(std::span<const std::int64_t> loads) {
  return static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
}

}  // namespace

std::vector<int> top1_assignment(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.cols() == 0)
    throw InvalidOption("probs", "no columns; there must be at least one expert");
  std::vector<int> assignment(static_cast<std::size_t>(probabilities.rows()));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    const double* routing = &probabilities.coeffRef(row, 0);
    assignment[static_cast<std::size_t>(row)] =
        static_cast<int>(std::max_element(routing, routing + probabilities.cols()) - routing);
  }
  return assignment;
}

std::vector<int> topk_assignment(const Eigen::Ref<const Matrix>& probabilities, int k) {
  const int experts = static_cast<int>(probabilities.cols());
  if (k < 1 || k > experts)
    throw InvalidOption("k", fmt::format("got {}, needs 1 to {}, the number of experts", k, experts));
  if (k == 1) return top1_assignment(probabilities);
  std::vector<int> assignment, order(static_cast<std::size_t>(experts));
  assignment.reserve(static_cast<std::size_t>(probabilities.rows() * k));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int left, int right) {
      return std::pair(-probabilities(row, left), left) < std::pair(-probabilities(row, right), right);
    });
    assignment.insert(assignment.end(), order.begin(), order.begin() + k);
  }
  return assignment;
}

std::vector<std::int64_t> expert_loads(std::span<const int> assignment, int experts) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(experts), 0);
  for (const int expert : assignment) {
    if (expert == -1) continue;
    if (expert < 0 || expert >= experts)
      throw InvalidOption("assignment",
                          fmt::format("expert {} where 0 to {} are allowed", expert, experts - 1));
    ++loads[static_cast<std::size_t>(expert)];
  }
  return loads;
}

std::optional<double> unserved_share(std::span<const int> serving) {
  if (serving.empty()) return std::nullopt;
  const auto unserved = std::count_if(serving.begin(), serving.end(), [](int expert) { return expert < 0; });
  return static_cast<double>(unserved) / static_cast<double>(serving.size());
}

std::optional<double> dead_experts(std::span<const int> serving, int experts) {
  if (serving.empty()) return std::nullopt;
  const std::vector<std::int64_t> loads = expert_loads(serving, experts);
  const std::int64_t rows = static_cast<std::int64_t>(serving.size());
  const auto dead = std::count_if(loads.begin(), loads.end(),
                                  [&](std::int64_t load) { return 10 * experts * load < rows; });
  return static_cast<double>(dead) / experts;
}

std::optional<double> expert_load_max_violation(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = total / static_cast<double>(loads.size());
  return (static_cast<double>(*std::max_element(loads.begin(), loads.end())) - mean) / mean;
}

std::optional<double> expert_load_max_deviation(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = total / static_cast<double>(loads.size());
  double largest = 0;
  for (const std::int64_t load : loads)
    largest = std::max(largest, std::abs(static_cast<double>(load) - mean));
  return largest / mean;
}

std::optional<double> expert_load_std_percent(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = 100.0 / static_cast<double>(loads.size());
  double squares = 0;
  for (const std::int64_t load : loads) {
    const double deviation = 100.0 * static_cast<double>(load) / total - mean;
    squares += deviation * deviation;
  }
  return std::sqrt(squares / static_cast<double>(loads.size()));
}

}  // namespace moelab
