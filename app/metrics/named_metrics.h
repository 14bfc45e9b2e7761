#pragma once

/// Metrics among the names of an expression (analysis/stats/expression.h).

#include <algorithm>
#include <string>
#include <vector>

#include "app/metrics/metric_groups.h"

namespace moelab {

inline bool has_metric(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), find_metric);
}

}  // namespace moelab
