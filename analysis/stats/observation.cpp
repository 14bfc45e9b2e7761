#include "analysis/stats/observation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.h"

namespace moelab {
namespace {

double median_of_values(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  // Equal ends are kept as they are: the mean of two infinities, or of two large values, need not be.
  if (values.size() % 2 == 1 || values[half - 1] == values[half]) return values[half];
  return (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string censored_name(const std::string& metric) {
  const std::size_t dot = metric.find('.');
  const std::string name = metric.substr(0, dot) + "_censored";
  return dot == std::string::npos ? name : name + metric.substr(dot);
}

std::optional<Interval> observed(const ResultRow& row, const MetricValues& metrics,
                                 const std::string& metric) {
  if (const auto found = metrics.find(metric); found != metrics.end()) {
    if (!std::isfinite(found->second)) return std::nullopt;
    return Interval{found->second, found->second};
  }
  const auto flag = metrics.find(censored_name(metric));
  if (flag == metrics.end() || flag->second != 1) return std::nullopt;
  const double last = row.trace.empty() ? 0 : static_cast<double>(row.trace.back().step);
  return Interval{last, std::numeric_limits<double>::infinity()};
}

void SignCounts::add(const Interval& left, const Interval& right) {
  const bool are_exact = is_exact(left) && is_exact(right);
  if (are_exact ? left.low == right.low : !is_exact(left) && !is_exact(right)) {
    ++ties;
  } else if (left.high <= right.low) {
    ++below;
  } else if (left.low >= right.high) {
    ++above;
  } else {
    ++undecided;
  }
}

Median median_of(std::span<const Interval> observations) {
  if (observations.empty()) throw InvalidOption("values", "empty; a median needs at least one value");
  std::vector<double> low, high;
  Median median;
  for (const Interval& observation : observations) {
    low.push_back(observation.low);
    high.push_back(observation.high);
    median.censored += is_exact(observation) ? 0 : 1;
  }
  median.count = static_cast<int>(observations.size());
  median.value = median_of_values(low);
  median.is_open = median.value != median_of_values(high);
  return median;
}

}  // namespace moelab
