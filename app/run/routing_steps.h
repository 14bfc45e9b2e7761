#pragma once

/// How the test rows were routed at each recorded step: what "save": ["routing_steps"] keeps.

#include <cstdint>
#include <string>
#include <vector>

#include "app/run/cell.h"
#include "sim/base/types.h"

namespace moelab {

/// Of one layer: recorded_steps (T), cluster_routing_steps (T, C, E), the mean routing of each cluster, the
/// clusters in the order in which the test rows show them, and expert_load_steps (T, E), the shares of rows
/// that are dispatched to each expert.
class RoutingSteps {
 public:
  void add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
           Eigen::Index rows);
  /// `ending` of the layer ends the names.
  std::vector<SavedArray> arrays(const std::string& ending) const;

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t clusters_ = 0, experts_ = 0;
  std::vector<double> routing_, loads_;
};

}  // namespace moelab
