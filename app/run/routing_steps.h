#pragma once

/// How the test rows were routed at each recorded step: what "save": ["routing_steps"] keeps.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/run/cell.h"
#include "sim/base/types.h"
#include "sim/model/network.h"

namespace moelab {

/// Of one layer: recorded_steps (T), cluster_routing_steps (T, C, E), the mean routing of each cluster, the
/// clusters in the order in which the test rows show them, and expert_load_steps (T, E), the shares of rows
/// that are dispatched to each expert; router_weight_steps (T, E, d) and router_bias_steps (T, E) of routers
/// that have arrays "router_weight", "router_bias".
class RoutingSteps {
 public:
  void add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
           Eigen::Index rows);
  /// The router's arrays at the step that was added last.
  template <class Real>
  void add_router(const Network<Real>& network, const AlignedVector<Real>& parameters, int layer);
  /// `ending` of the layer ends the names.
  std::vector<SavedArray> arrays(const std::string& ending) const;

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t clusters_ = 0, experts_ = 0;
  std::vector<double> routing_, loads_;
  std::map<std::string, SavedArray> router_;  ///< by the array's name, without an ending
};

/// How many numbers of the routers' arrays are kept at a step, in all layers.
template <class Real>
std::size_t router_numbers_per_step(const Network<Real>& network);

}  // namespace moelab
