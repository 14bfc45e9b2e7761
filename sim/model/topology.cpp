#include "sim/model/topology.h"

#include <algorithm>

#include "sim/model/blocks/dense.h"
#include "sim/model/blocks/self_attention.h"
#include "sim/model/blocks/token_embedding.h"
#include "sim/model/expert/joined_banks.h"
#include "sim/model/transformer.h"

namespace moelab {
namespace {

template <class Real>
std::unique_ptr<Mixture<Real>> make_mixture(const ModelOptions& options, const Layout& layout, int layer,
                                            int output_dim, const Gatings<Real>& gatings) {
  RouterSetting setting;
  setting.input_dim = layout.router_dim();
  setting.experts = routed_experts(options);
  setting.layer = layer;
  setting.layers = mixtures_of(options);
  setting.image = layout.image;
  setting.causal = options.kind == ModelOptions::Kind::transformer && options.transformer.is_causal();
  MixtureParts<Real> parts;
  parts.router = make_router<Real>(options.router, setting);
  const int expert_dim = layout.input_dim - layout.image.size() + parts.router->feature_dim();
  const ExpertSetting networks{expert_dim, output_dim, options.experts};
  parts.bank = make_expert_bank<Real>(expert_of(options), networks);
  if (options.null_experts > 0)
    parts.bank = with_null_experts(std::move(parts.bank), networks, options.null_experts);
  if (options.shared_experts > 0)
    parts.bank =
        with_shared_experts(std::move(parts.bank), expert_of(options), networks, options.shared_experts);
  parts.router_trainable = is_trainable(options.router);
  parts.layer = layer;
  parts.experts = routed_experts(options);
  parts.null_experts = options.null_experts;
  parts.jitter = options.gating.jitter;
  parts.input_dim = layout.input_dim;
  parts.output_dim = output_dim;
  parts.image_size = layout.image.size();
  parts.learned_gating = gatings.learned;
  parts.train_gating = gatings.train;
  parts.balance_rate = options.gating.balance_rate;
  return std::make_unique<Mixture<Real>>(std::move(parts));
}

/// A block at the end of a list; `layer` as PlacedBlock has it.
template <class Real>
PlacedBlock<Real>& add_block(std::vector<PlacedBlock<Real>>& blocks, std::unique_ptr<Block<Real>> block,
                             int layer, Mixture<Real>* mixture = nullptr) {
  PlacedBlock<Real>& placed = blocks.emplace_back();
  placed.block = std::move(block);
  placed.layer = layer;
  placed.streams = std::max(layer, 0);
  placed.mixture = mixture;
  return placed;
}

/// See TransformerOptions. Layers are those with a mixture; streams count all, so that those of an attention
/// do not depend on which of them have one.
template <class Real>
std::vector<PlacedBlock<Real>> make_transformer(const ModelOptions& options, const Layout& layout,
                                                const Gatings<Real>& gatings) {
  const TransformerOptions& own = options.transformer;
  const int dim = layout.input_dim, vocabulary = layout.vocabulary;
  const Normalization norm = own.norm.value_or(Normalization::layer);
  const bool is_rotary = own.positions == TransformerOptions::Positions::rotary;
  const bool is_tied = own.tied_embedding.value_or(false);
  const std::vector<int> with_mixture = moe_layers(own, options.layers);
  std::vector<PlacedBlock<Real>> blocks;
  add_block(blocks,
            make_token_embedding<Real>({.vocabulary = vocabulary,
                                        .masks = own.is_causal() ? 0 : 1,
                                        .dim = dim,
                                        .places = is_rotary ? 0 : layout.tokens,
                                        .tied = is_tied}),
            -1);
  int mixtures = 0;
  for (int depth = 0; depth < options.layers; ++depth) {
    const std::string prefix = "block" + std::to_string(depth) + "_";
    const auto add_residual = [&](const std::string& name, std::unique_ptr<Block<Real>> part, int layer,
                                  Mixture<Real>* mixture) {
      std::unique_ptr<Block<Real>> normalized = make_normalized<Real>(norm, dim, name, std::move(part));
      const Dropout dropout{own.dropout.value_or(0),
                            prefix + (name.ends_with("attention_") ? "attention_" : "") + "dropout",
                            name.ends_with("attention_") ? 4u : 5u};
      add_block(blocks, make_residual<Real>(std::move(normalized), dropout), layer, mixture).streams = depth;
    };
    const bool has_mixture = std::find(with_mixture.begin(), with_mixture.end(), depth) != with_mixture.end();
    add_residual(
        prefix + "attention_",
        make_self_attention<Real>({.dim = dim,
                                   .heads = own.heads.value_or(1),
                                   .tokens = layout.tokens,
                                   .rotary = is_rotary,
                                   .causal = own.is_causal(),
                                   .recorded = has_mixture && options.router.entry().needs_attention}),
        -1, nullptr);
    if (!has_mixture) {
      add_residual(prefix + "dense_", make_dense<Real>(transformer_network(options), dim, dim), -1, nullptr);
      continue;
    }
    std::unique_ptr<Mixture<Real>> mixture = make_mixture<Real>(options, layout, mixtures, dim, gatings);
    Mixture<Real>* const placed = mixture.get();
    add_residual("", std::move(mixture), mixtures++, placed);
  }
  add_block(blocks, make_normalization<Real>(norm, dim, "readout_"), -1);
  if (is_tied) {
    add_block(blocks, make_tied_readout<Real>(vocabulary, dim), -1).parameters_of = 0;
  } else {
    add_block(blocks, make_readout<Real>(dim, vocabulary), -1).streams = options.layers;
  }
  return blocks;
}

}  // namespace

template <class Real>
std::vector<PlacedBlock<Real>> make_blocks(const ModelOptions& options, const Layout& data_layout,
                                           const Gatings<Real>& gatings) {
  const Layout layout = layout_of_blocks(options, data_layout);
  if (options.kind == ModelOptions::Kind::transformer)
    return make_transformer<Real>(options, layout, gatings);
  std::vector<PlacedBlock<Real>> blocks;
  const auto add = [&](std::unique_ptr<Block<Real>> block, int layer, Mixture<Real>* mixture = nullptr) {
    add_block(blocks, std::move(block), layer, mixture);
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
