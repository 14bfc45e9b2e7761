#include "analysis/stats/result_table.h"

#include <algorithm>

namespace moelab {

const SweepValue* ResultRow::coordinate(const std::string& path) const {
  const auto found = std::find_if(point.begin(), point.end(), [&](const auto& c) { return c.first == path; });
  return found == point.end() ? nullptr : &found->second;
}

}  // namespace moelab
