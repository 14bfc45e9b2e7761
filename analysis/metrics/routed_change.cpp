#include "analysis/metrics/routed_change.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace moelab {

RoutedChange::RoutedChange(int experts, int top_k, int documents, bool is_ordered)
    : experts_(static_cast<std::size_t>(experts)),
      top_k_(static_cast<std::size_t>(top_k)),
      is_by_document_(documents > 0),
      is_ordered_(is_ordered || top_k == 1) {
  sums_.assign(width() * static_cast<std::size_t>(std::max(1, documents)), 0);
}

void RoutedChange::add(const int* before, const int* now, int document) {
  const std::size_t at = is_by_document_ ? static_cast<std::size_t>(document) * width() : 0;
  const std::span<double> sums = std::span(sums_).subspan(at, width());
  std::size_t common = 0, both = 0, earlier = 0;
  for (std::size_t j = 0; j < top_k_; ++j) {
    if (before[j] >= 0) {
      ++earlier;
      ++sums[kUnits + experts_ + static_cast<std::size_t>(before[j])];
    }
    if (now[j] < 0) continue;
    ++both;
    ++sums[kUnits + static_cast<std::size_t>(now[j])];
    common += std::find(before, before + top_k_, now[j]) != before + top_k_ ? 1 : 0;
  }
  ++sums[kTokens];
  sums[kCommon] += static_cast<double>(common) / static_cast<double>(top_k_);
  sums[kOtherSets] += common == both && both == earlier ? 0 : 1;
  sums[kOtherFirsts] += before[0] == now[0] ? 0 : 1;
}

RoutedValues RoutedChange::values_of(std::span<const double> sums) const {
  const double tokens = sums[kTokens];
  const std::span<const double> now = sums.subspan(kUnits, experts_),
                                before = sums.subspan(kUnits + experts_, experts_);
  RoutedValues values = {{"routing_saturation", sums[kCommon] / tokens},
                         {"routing_fluctuation_topk", sums[kOtherSets] / tokens}};
  if (is_ordered_) values.emplace_back("routing_fluctuation", sums[kOtherFirsts] / tokens);
  const double all = std::accumulate(now.begin(), now.end(), 0.0),
               earlier = std::accumulate(before.begin(), before.end(), 0.0);
  if (all == 0 || earlier == 0) return values;
  double drift = 0;
  for (std::size_t e = 0; e < experts_; ++e) drift += std::abs(now[e] / all - before[e] / earlier) / 2;
  const auto count = static_cast<double>(experts_);
  values.emplace_back("load_drift", drift);
  values.emplace_back("max_violation_change",
                      count * (*std::max_element(now.begin(), now.end()) / all -
                               *std::max_element(before.begin(), before.end()) / earlier));
  return values;
}

RoutedValues RoutedChange::values() const {
  std::vector<double> total(width(), 0);
  for (std::size_t at = 0; at < sums_.size(); ++at) total[at % width()] += sums_[at];
  return values_of(total);
}

std::map<std::string, Interval> RoutedChange::intervals(const DocumentStrata& strata, int times,
                                                        Engine& engine) const {
  if (!is_by_document_) return {};
  return document_intervals(sums_, width(), strata, times, engine,
                            [&](std::span<const double> sums) { return values_of(sums); });
}

}  // namespace moelab
