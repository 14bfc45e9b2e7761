#include "analysis/stats/corrections.h"

#include <algorithm>
#include <numeric>

namespace moelab {
namespace {

std::vector<std::size_t> ascending_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t left, std::size_t right) { return values[left] < values[right]; });
  return order;
}

}  // namespace

std::vector<double> holm(std::span<const double> p_values) {
  const std::vector<std::size_t> order = ascending_order(p_values);
  std::vector<double> corrected(p_values.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(order.size() - i) * p_values[order[i]]);
    corrected[order[i]] = std::min(1.0, largest);
  }
  return corrected;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  const std::vector<std::size_t> order = ascending_order(p_values);
  std::vector<double> corrected(p_values.size());
  double least = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    least =
        std::min(least, static_cast<double>(order.size()) * p_values[order[i]] / static_cast<double>(i + 1));
    corrected[order[i]] = least;
  }
  return corrected;
}

}  // namespace moelab
