/// Model kind "dense": one network without a router.

#include "sim/model/blocks/dense.h"

#include "sim/base/error.h"
#include "sim/model/network.h"

namespace moelab {
namespace {

void check_dense(const ModelOptions& options) {
  const DenseOptions& own = *options.kind.as<DenseOptions>();
  if (own.match == Match::active || own.match == Match::total)
    throw InvalidOption("model.match", "got a match of transformers; a dense model needs 'expert' or 'moe'");
  if (own.width && own.match)
    throw InvalidOption("model.width", "given, but model.match says which width; needs one");
  if (own.width && !own.depth)
    throw InvalidOption("model.depth", "missing; a dense model with model.width needs it");
  if (!own.width && !own.match)
    throw InvalidOption("model.match",
                        "missing; a dense model needs 'expert' or 'moe' to match, or "
                        "model.width and model.depth");
  if (options.attention && own.reads == DenseOptions::Reads::sequence)
    throw InvalidOption("model.reads",
                        "got \"sequence\", but model.attention is given, which needs \"tokens\"");
}

/// The parameter count that a dense model matches: one expert, or the mixture and its read-out.
std::size_t matched_size(ModelOptions options, const Layout& layout) {
  const bool one_expert = options.kind.as<DenseOptions>()->match == Match::expert;
  options.kind = MoeOptions{};
  const GatingSetting setting = gating_setting(options, layout);
  std::unique_ptr<Gating<float>> learned = make_gating<float>(options.gating.train, setting);
  if (learned->block_size() == 0) learned = make_gating<float>(options.gating.eval, setting);
  std::size_t count = 0;
  for (const PlacedBlock<float>& placed : make_blocks<float>(
           options, layout, {.learned = learned->block_size() > 0 ? learned.get() : nullptr})) {
    if (placed.mixture && one_expert) return placed.mixture->parameters_per_expert();
    if (placed.mixture || placed.layer == options.layers) count += placed.block->parameter_count();
  }
  return count;
}

template <class Real>
std::vector<PlacedBlock<Real>> make_dense_model(const ModelOptions& options, const Layout& data_layout,
                                                const Gatings<Real>& /*gatings*/) {
  const Layout layout = layout_of_blocks(options, data_layout);
  std::vector<PlacedBlock<Real>> blocks;
  if (options.attention)
    add_block(blocks, make_attention<Real>(*options.attention, layout.input_dim, layout.tokens), 0);
  add_block(blocks,
            make_dense<Real>(dense_network(options, data_layout), layout.input_dim, layout.output_dim), 0);
  if (layout.tokens > 1 && !layout.target_per_token)
    add_block(blocks, make_sum_over_tokens<Real>(layout.output_dim), 1);
  return blocks;
}

}  // namespace

void DenseOptions::bind(Fields& fields) {
  bind_match(fields, match);
  bind_width(fields, width);
  fields.add("depth", depth, between(1, 64),
             "dense models: weight matrices, where not one more than an expert has; at depth 1 there is no "
             "width to match");
  fields.add(
      "reads", reads, {"tokens", "sequence"},
      "dense models on sequences: one token at a time, outputs added, or the whole sequence as one row");
}

ExpertOptions dense_network(const ModelOptions& options, const Layout& layout) {
  const Layout own = layout_read_by(options, layout);
  const DenseOptions& dense = *options.kind.as<DenseOptions>();
  if (dense.width) return MlpExpertOptions{.depth = dense.depth.value_or(2), .width = *dense.width};
  const std::size_t target = matched_size(options, layout);
  MlpExpertOptions network;
  network.depth = dense.depth.value_or(expert_depth(options.expert) + 1);
  network.width = 1;
  if (const MlpExpertOptions* const mlp = options.expert.as<MlpExpertOptions>()) {
    network.init_scale = mlp->init_scale;
  }
  set_matching_width(network, own.input_dim, own.output_dim, target);
  return network;
}

ModelKind dense_model() {
  ModelKind kind =
      model_kind("dense", "one network without a router", {make_dense_model<float>, make_dense_model<double>},
                 DenseOptions{.width = 5, .depth = 2});
  kind.check = check_dense;
  kind.matches_mixture = [](const ModelOptions& options) {
    return !options.kind.as<DenseOptions>()->width.has_value();
  };
  kind.layout_read = [](const ModelOptions& options, const Layout& layout) {
    if (options.kind.as<DenseOptions>()->reads == DenseOptions::Reads::tokens) return layout;
    return Layout{.input_dim = layout.sample_dim(), .output_dim = layout.target_dim()};
  };
  return kind;
}

}  // namespace moelab
