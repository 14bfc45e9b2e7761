#include "app/run/routing_steps.h"

#include <vector>

namespace moelab {
namespace {

/// The arrays of a layer's router that are kept at every step. `parameters` (router_size()) are the router's:
/// those of the whole network may be more than memory holds.
template <class Real>
std::vector<NamedArray<Real>> kept_arrays(const Mixture<Real>& mixture, const Real* parameters) {
  std::vector<NamedArray<Real>> arrays = mixture.router_arrays(parameters);
  std::erase_if(arrays, [](const NamedArray<Real>& array) {
    return array.name != "router_weight" && array.name != "router_bias";
  });
  return arrays;
}

}  // namespace

void RoutingSteps::add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
                       Eigen::Index rows) {
  steps_.push_back(step);
  clusters_ = mean_routing.rows();
  experts_ = mean_routing.cols();
  routing_.insert(routing_.end(), mean_routing.data(), mean_routing.data() + mean_routing.size());
  for (const std::int64_t load : loads)
    loads_.push_back(static_cast<double>(load) / static_cast<double>(rows));
}

template <class Real>
void RoutingSteps::add_router(const Network<Real>& network, const AlignedVector<Real>& parameters,
                              int layer) {
  const PlacedBlock<Real>& placed = network.placed_mixture(layer);
  for (const NamedArray<Real>& array : kept_arrays(*placed.mixture, parameters.data() + placed.parameters)) {
    SavedArray& kept = router_[array.name];
    kept.shape = array.shape;
    kept.values.insert(kept.values.end(), array.values.begin(), array.values.end());
  }
}

std::vector<SavedArray> RoutingSteps::arrays(const std::string& ending) const {
  const auto count = static_cast<std::int64_t>(steps_.size());
  std::vector<SavedArray> arrays = {
      {"recorded_steps" + ending, {count}, {}, steps_},
      {"cluster_routing_steps" + ending, {count, clusters_, experts_}, routing_, {}},
      {"expert_load_steps" + ending, {count, experts_}, loads_, {}}};
  for (const auto& [name, kept] : router_) {
    std::vector<std::int64_t> shape = kept.shape;
    shape.insert(shape.begin(), count);
    arrays.push_back({name + "_steps" + ending, std::move(shape), kept.values, {}});
  }
  return arrays;
}

template <class Real>
std::size_t router_numbers_per_step(const Network<Real>& network) {
  std::size_t numbers = 0;
  for (int layer = 0; network.has_router() && layer < network.layers(); ++layer) {
    const Mixture<Real>& mixture = network.mixture(layer);
    const AlignedVector<Real> parameters(mixture.router_size());
    for (const NamedArray<Real>& array : kept_arrays(mixture, parameters.data()))
      numbers += array.values.size();
  }
  return numbers;
}

template void RoutingSteps::add_router(const Network<float>&, const AlignedVector<float>&, int);
template void RoutingSteps::add_router(const Network<double>&, const AlignedVector<double>&, int);
template std::size_t router_numbers_per_step(const Network<float>&);
template std::size_t router_numbers_per_step(const Network<double>&);

}  // namespace moelab
