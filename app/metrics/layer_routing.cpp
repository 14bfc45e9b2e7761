#include "app/metrics/layer_routing.h"

namespace moelab {

template <class Real>
std::vector<std::int64_t> LayerRouting<Real>::loads() {
  const Network<Real>& network = *moment_.model.network;
  if (network.eval_gating().activates_all()) {
    return expert_loads(moment_.model, layer_, network.top1_gating(), data_.test_inputs(), data_.samples(),
                        moment_.workspace);
  }
  const std::vector<unsigned char>& selected = routed().selected;
  const std::size_t experts = static_cast<std::size_t>(network.experts());
  std::vector<std::int64_t> loads(experts, 0);
  for (std::size_t i = 0; i < selected.size(); ++i) loads[i % experts] += selected[i];
  return loads;
}

template class LayerRouting<float>;
template class LayerRouting<double>;

}  // namespace moelab
