#include "sim/model/dense_network.h"

#include "sim/base/error.h"
#include "sim/model/mlp.h"
#include "sim/model/moe_layer.h"

namespace moelab {

Layout layout_read_by(const Json& spec, const Layout& layout) {
  if (spec.at("kind") != "dense" || spec.at("reads") != "sequence") return layout;
  if (spec.contains("attention")) {
    throw UserError("model.reads", "got \"sequence\", but model.attention is given, which needs \"tokens\"");
  }
  return {.input_dim = layout.sample_dim(), .output_dim = layout.target_dim()};
}

Json dense_network(const Json& spec, const Layout& layout) {
  const Json& expert = spec.at("expert");
  const int layers = spec.at("layers");
  const MoeLayer<float> layer(spec, layout, layers > 1 ? layout.input_dim : layout.output_dim);
  std::size_t target = layer.parameters_per_expert();
  if (spec.at("match") == "moe") target = static_cast<std::size_t>(layers) * layer.parameter_count();
  if (spec.at("match") == "moe" && layers > 1) {
    target += Mlp<float>({layout.input_dim, layout.output_dim}).parameter_count();
  }
  const Layout own = layout_read_by(spec, layout);
  const int depth = spec.value("depth", expert_depth(expert) + 1);
  Json network = {{"kind", "mlp"}, {"depth", depth}, {"width", 1}, {"init_scale", 1.0}};
  if (expert.at("kind") == "mlp") network["init_scale"] = expert.at("init_scale");
  if (depth == 1) return network;  // one matrix from inputs to outputs, whatever the width
  const auto count_at = [&](int width) {
    network["width"] = width;
    return make_expert_bank<float>(network, own.input_dim, own.output_dim, 1)->parameters_per_expert();
  };
  int low = 1;
  int high = 2;
  while (count_at(high) < target) high *= 2;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (count_at(middle) <= target ? low : high) = middle;
  }
  const std::size_t below = count_at(low);
  const std::size_t above = count_at(high);
  const std::size_t miss_below = below > target ? below - target : target - below;
  const std::size_t miss_above = above > target ? above - target : target - above;
  network["width"] = miss_above < miss_below ? high : low;
  return network;
}

}  // namespace moelab
