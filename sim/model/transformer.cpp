#include "sim/model/transformer.h"

#include <fmt/format.h>

#include "sim/model/expert/expert.h"
#include "sim/model/model_options.h"

namespace moelab {

void check_transformer(const ModelOptions& options) {
  if (options.kind != ModelOptions::Kind::transformer) return check_no_transformer(options.transformer);
  check(options.transformer, options.width, options.layers);
  const auto refuse = [](const char* field, bool given) {
    if (given) throw InvalidOption(std::string("model.") + field, "given, but model.kind is 'transformer'");
  };
  refuse("depth", options.depth.has_value());
  refuse("input_width", options.input_width.has_value());
  refuse("attention", options.attention.has_value());
  if (options.reads == ModelOptions::Reads::sequence)
    throw InvalidOption("model.reads", "got \"sequence\", but model.kind is 'transformer'; needs \"tokens\"");
  if (options.match && mixtures_of(options) > 0)
    throw InvalidOption("model.match", "given, but the transformer has mixtures; needs model.moe_layers []");
  if (options.match == ModelOptions::Match::expert || options.match == ModelOptions::Match::moe)
    throw InvalidOption("model.match",
                        "got a match of dense models; a transformer needs 'active' or 'total'");
}

void check_transformer_router(const ModelOptions& options) {
  if (options.kind != ModelOptions::Kind::transformer) return;
  const RouterKind& router = options.router.entry();
  const std::string path = "model.router.kind";
  const std::string got = fmt::format("got \"{}\", ", router.name);
  if (router.needs_image) throw InvalidOption(path, got + "which reads an image; a transformer has none");
  if (router.reads_first_inputs)
    throw InvalidOption(path, got + "which routes by the model's own inputs; those of a transformer are ids");
  if (router.needs_train_rows(options.router.options()))
    throw InvalidOption("model.router.init", "starts at training samples, which are ids for a transformer");
}

ExpertOptions expert_of(const ModelOptions& options) {
  if (!options.expert.chosen().empty()) return options.expert;
  return MlpExpertOptions{.depth = 2, .width = options.transformer.feed_forward.value_or(4 * *options.width)};
}

ExpertOptions transformer_network(const ModelOptions& options) {
  const int dim = *options.width;
  MlpExpertOptions network{.depth = 2, .width = options.transformer.feed_forward.value_or(4 * dim)};
  if (!options.match) return network;
  const GatingKind& gating = options.gating.train.entry();
  const int most = gating.most_experts ? gating.most_experts(options.gating.train.options()) : 0;
  const bool is_active = options.match == ModelOptions::Match::active && most > 0;
  const std::size_t of_expert =
      make_expert_bank<float>(expert_of(options), {dim, dim, 1})->parameters_per_expert();
  const std::size_t of_router =
      make_router<float>(options.router, {.input_dim = dim, .experts = options.experts})->parameter_count();
  set_matching_width(network, dim, dim, of_router + of_expert * size(is_active ? most : options.experts));
  return network;
}

}  // namespace moelab
