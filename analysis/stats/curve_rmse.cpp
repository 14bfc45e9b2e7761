#include "analysis/stats/curve_rmse.h"

#include <cmath>

namespace moelab {

std::optional<double> curve_rmse(const std::vector<TraceEntry>& left, const std::vector<TraceEntry>& right,
                                 const std::string& metric) {
  if (left.empty() || left.size() != right.size()) return std::nullopt;
  double squares = 0;
  for (std::size_t t = 0; t < left.size(); ++t) {
    const auto one = left[t].metrics.find(metric), other = right[t].metrics.find(metric);
    if (left[t].step != right[t].step || one == left[t].metrics.end() || other == right[t].metrics.end())
      return std::nullopt;
    const double difference = one->second - other->second;
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(left.size()));
}

}  // namespace moelab
