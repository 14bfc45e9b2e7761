#include "sim/model/topology.h"

#include "sim/model/blocks/dense.h"

namespace moelab {
namespace {

template <class Real>
std::unique_ptr<Mixture<Real>> make_mixture(const ModelOptions& options, const Layout& layout, int layer,
                                            int output_dim, const Gatings<Real>& gatings) {
  RouterSetting setting;
  setting.input_dim = layout.router_dim();
  setting.experts = options.experts;
  setting.layer = layer;
  setting.layers = options.layers;
  setting.image = layout.image;
  MixtureParts<Real> parts;
  parts.router = make_router<Real>(options.router, setting);
  const int expert_dim = layout.input_dim - layout.image.size() + parts.router->feature_dim();
  parts.bank = make_expert_bank<Real>(options.expert, {expert_dim, output_dim, options.experts});
  parts.router_trainable = is_trainable(options.router);
  parts.layer = layer;
  parts.experts = options.experts;
  parts.input_dim = layout.input_dim;
  parts.output_dim = output_dim;
  parts.image_size = layout.image.size();
  parts.learned_gating = gatings.learned;
  parts.train_gating = gatings.train;
  parts.balance_rate = options.gating.balance_rate;
  return std::make_unique<Mixture<Real>>(std::move(parts));
}

}  // namespace

template <class Real>
std::vector<PlacedBlock<Real>> make_blocks(const ModelOptions& options, const Layout& data_layout,
                                           const Gatings<Real>& gatings) {
  const Layout layout = layout_of_blocks(options, data_layout);
  std::vector<PlacedBlock<Real>> blocks;
  const auto add = [&](std::unique_ptr<Block<Real>> block, int layer, Mixture<Real>* mixture = nullptr) {
    PlacedBlock<Real> placed;
    placed.block = std::move(block);
    placed.layer = layer;
    placed.mixture = mixture;
    blocks.push_back(std::move(placed));
  };
  const int layers = options.kind == ModelOptions::Kind::dense ? 1 : options.layers;
  const bool is_stack = layers > 1;
  if (options.input_width) add(make_projection<Real>(data_layout.input_dim, layout.input_dim), -1);
  for (int layer = 0; layer < layers; ++layer) {
    if (options.attention) {
      add(make_attention<Real>(*options.attention, layout.input_dim, layout.tokens), layer);
    }
    if (options.kind == ModelOptions::Kind::dense) {
      add(make_dense<Real>(dense_network(options, data_layout), layout.input_dim, layout.output_dim), layer);
      continue;
    }
    std::unique_ptr<Mixture<Real>> mixture =
        make_mixture<Real>(options, layout, layer, is_stack ? layout.input_dim : layout.output_dim, gatings);
    Mixture<Real>* const placed = mixture.get();
    if (is_stack) {
      add(make_residual<Real>(std::move(mixture)), layer, placed);
    } else {
      add(std::move(mixture), layer, placed);
    }
  }
  if (is_stack) add(make_readout<Real>(layout.input_dim, layout.output_dim), layers);
  if (layout.tokens > 1 && !layout.target_per_token) {
    add(make_sum_over_tokens<Real>(layout.output_dim), layers);
  }
  return blocks;
}

template std::vector<PlacedBlock<float>> make_blocks(const ModelOptions&, const Layout&,
                                                     const Gatings<float>&);
template std::vector<PlacedBlock<double>> make_blocks(const ModelOptions&, const Layout&,
                                                      const Gatings<double>&);

}  // namespace moelab
