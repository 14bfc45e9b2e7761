/// Model kind "moe": mixtures of experts.

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/model/blocks/dense.h"
#include "sim/model/network.h"

namespace moelab {
namespace {

/// Rejects routers that need the original rows, since a projection replaces these.
void check_projection(const ModelOptions& options) {
  if (!has_projection(options) || options.router.chosen().empty()) return;
  const std::string path = "model.input_width";
  const RouterKind& router = options.router.entry();
  if (router.needs_image) throw InvalidOption(path, "given, but the router reads an image");
  if (router.reads_first_inputs) {
    throw InvalidOption(path, fmt::format("given, but model.router \"{}\" routes by the model's own inputs, "
                                          "before that projection",
                                          router.name));
  }
  if (options.router.entry().needs_train_rows(options.router.options()))
    throw InvalidOption(path,
                        "given, but model.router.init starts at training samples, which are as wide as "
                        "the data");
}

/// Blocks: [projection] [attention] MoE. With two or more layers each mixture has a residual connection, and
/// a read-out follows. With one target per sample, f = Σ_t f(x_t) over its tokens.
template <class Real>
std::vector<PlacedBlock<Real>> make_moe(const ModelOptions& options, const Layout& data_layout,
                                        const Gatings<Real>& gatings) {
  const Layout layout = layout_of_blocks(options, data_layout);
  const int layers = options.layers;
  const bool is_stack = layers > 1;
  std::vector<PlacedBlock<Real>> blocks;
  if (has_projection(options))
    add_block(blocks, make_projection<Real>(data_layout.input_dim, layout.input_dim), -1);
  for (int layer = 0; layer < layers; ++layer) {
    if (options.attention) {
      add_block(blocks, make_attention<Real>(*options.attention, layout.input_dim, layout.tokens), layer);
    }
    std::unique_ptr<Mixture<Real>> mixture =
        make_mixture<Real>(options, layout, layer, is_stack ? layout.input_dim : layout.output_dim, gatings);
    Mixture<Real>* const placed = mixture.get();
    std::unique_ptr<Block<Real>> block = std::move(mixture);
    if (is_stack) block = make_residual<Real>(std::move(block));
    add_block(blocks, std::move(block), layer, placed);
  }
  if (is_stack) add_block(blocks, make_readout<Real>(layout.input_dim, layout.output_dim), layers);
  if (layout.tokens > 1 && !layout.target_per_token)
    add_block(blocks, make_sum_over_tokens<Real>(layout.output_dim), layers);
  return blocks;
}

}  // namespace

void MoeOptions::bind(Fields& fields) {
  fields.add("input_width", input_width, between(1, 65536),
             "mixtures: a linear layer maps rows to this width before the first layer; routers and experts "
             "read it; it learns at the experts' rate");
}

ModelKind moe_model() {
  ModelKind kind = model_kind<MoeOptions>("moe", "a mixture of experts", {make_moe<float>, make_moe<double>});
  kind.check = check_projection;
  kind.mixtures = [](const ModelOptions& options) { return options.layers; };
  kind.layout_of_blocks = [](const ModelOptions& options, const Layout& layout) {
    Layout own = layout;
    own.input_dim = options.kind.as<MoeOptions>()->input_width.value_or(layout.input_dim);
    return own;
  };
  return kind;
}

}  // namespace moelab
