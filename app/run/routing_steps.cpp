#include "app/run/routing_steps.h"

namespace moelab {

void RoutingSteps::add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
                       Eigen::Index rows) {
  steps_.push_back(step);
  clusters_ = mean_routing.rows();
  experts_ = mean_routing.cols();
  routing_.insert(routing_.end(), mean_routing.data(), mean_routing.data() + mean_routing.size());
  for (const std::int64_t load : loads)
    loads_.push_back(static_cast<double>(load) / static_cast<double>(rows));
}

std::vector<SavedArray> RoutingSteps::arrays(const std::string& ending) const {
  const auto count = static_cast<std::int64_t>(steps_.size());
  return {{"recorded_steps" + ending, {count}, {}, steps_},
          {"cluster_routing_steps" + ending, {count, clusters_, experts_}, routing_, {}},
          {"expert_load_steps" + ending, {count, experts_}, loads_, {}}};
}

}  // namespace moelab
