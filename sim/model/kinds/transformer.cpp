/// Model kind "transformer": transformers on token ids.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.h"
#include "sim/model/blocks/dense.h"
#include "sim/model/network.h"

namespace moelab {
namespace {

const TransformerOptions& own_of(const ModelOptions& options) {
  return *options.kind.as<TransformerOptions>();
}

[[noreturn]] void refuse_moe_layers(const std::string& got, int layers) {
  throw InvalidOption(
      "model.moe_layers",
      fmt::format("got {}, needs \"all\", \"alternate\", or different layers from 0 to {}, ascending", got,
                  layers - 1));
}

void check_mixer(const TransformerOptions& own) {
  if (!own.width) throw InvalidOption("model.width", "missing; a transformer needs the width of its rows");
  const bool is_rotary = own.positions == TransformerOptions::Positions::rotary;
  const MixerKind& mixer = own.mixer.entry();
  if (!mixer.has_heads) {
    const std::string has_none = fmt::format("model.mixer \"{}\" has no heads", mixer.name);
    if (own.heads) throw InvalidOption("model.heads", "given, but " + has_none);
    if (is_rotary) throw InvalidOption("model.positions", "got \"rotary\", but " + has_none);
    return;
  }
  if (!own.heads) throw InvalidOption("model.heads", "missing; a transformer needs it");
  if (*own.width % *own.heads != 0) {
    throw InvalidOption("model.heads",
                        fmt::format("got {}, needs a divisor of model.width = {}", *own.heads, *own.width));
  }
  if (is_rotary && *own.width / *own.heads % 2 != 0) {
    throw InvalidOption(
        "model.heads",
        fmt::format("got {}, but \"rotary\" positions need an even model.width / model.heads = {}",
                    *own.heads, *own.width / *own.heads));
  }
}

/// Rejects routers that cannot work in a transformer.
void check_router(const RouterOptions& options, const MixerKind& mixer) {
  if (options.chosen().empty()) return;
  const RouterKind& router = options.entry();
  const std::string path = "model.router.kind";
  const std::string got = fmt::format("got \"{}\", ", router.name);
  if (router.needs_image) throw InvalidOption(path, got + "which reads an image; a transformer has none");
  if (router.reads_first_inputs)
    throw InvalidOption(path,
                        got + "which routes by the model's own inputs; the inputs of a transformer are ids");
  if (router.needs_attention && !mixer.leaves_attention)
    throw InvalidOption(path,
                        fmt::format("{}which reads attention; model.mixer \"{}\" has none", got, mixer.name));
  if (router.needs_train_rows(options.options()))
    throw InvalidOption("model.router.init", "starts at training samples, which are ids for a transformer");
}

void check_transformer(const ModelOptions& options) {
  const TransformerOptions& own = own_of(options);
  check_mixer(own);
  const bool has_mixtures = !moe_layers(own, options.layers).empty();
  if (options.attention) throw InvalidOption("model.attention", "given, but model.kind is 'transformer'");
  if (own.match && has_mixtures)
    throw InvalidOption("model.match", "given, but the transformer has mixtures; needs model.moe_layers []");
  if (own.match == Match::expert || own.match == Match::moe)
    throw InvalidOption("model.match",
                        "got a match of dense models; a transformer needs 'active' or 'total'");
  if (has_mixtures || own.match) check_router(options.router, own.mixer.entry());
  if (own.match == Match::active && most_experts(options.gating.train) == 0) {
    throw InvalidOption("model.match",
                        fmt::format("got \"active\", but model.gating.train \"{}\" has no number of experts "
                                    "for a row; needs \"total\", or a gating with k",
                                    options.gating.train.chosen()));
  }
}

/// The blocks of a transformer; see TransformerOptions. PlacedBlock::layer counts the layers with a mixture.
/// PlacedBlock::streams counts all layers, so a mixer's start does not depend on which layers have a mixture.
template <class Real>
std::vector<PlacedBlock<Real>> make_transformer(const ModelOptions& options, const Layout& data_layout,
                                                const Gatings<Real>& gatings) {
  const TransformerOptions& own = own_of(options);
  const MixerKind& mixer = own.mixer.entry();
  const Layout layout = layout_of_blocks(options, data_layout);
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
    // The mixer and the network draw their dropout from different streams.
    enum Part : std::uint64_t { kMixer = 4, kNetwork = 5 };
    const auto add_residual = [&](Part of, const std::string& name, std::unique_ptr<Block<Real>> part,
                                  int layer = -1, Mixture<Real>* mixture = nullptr) {
      std::unique_ptr<Block<Real>> normalized = make_normalized<Real>(norm, dim, name, std::move(part));
      const Dropout dropout{own.dropout.value_or(0), (of == kMixer ? name : prefix) + "dropout", of};
      add_block(blocks, make_residual<Real>(std::move(normalized), dropout), layer, mixture).streams = depth;
    };
    const bool has_mixture = std::find(with_mixture.begin(), with_mixture.end(), depth) != with_mixture.end();
    add_residual(
        kMixer, prefix + (mixer.prefix.empty() ? mixer.name : mixer.prefix) + "_",
        make_mixer<Real>(own.mixer, {.dim = dim,
                                     .heads = own.heads.value_or(1),
                                     .tokens = layout.tokens,
                                     .rotary = is_rotary,
                                     .causal = own.is_causal(),
                                     .recorded = has_mixture && options.router.entry().needs_attention}));
    if (!has_mixture) {
      add_residual(kNetwork, prefix + "dense_", make_dense<Real>(transformer_network(options), dim, dim));
      continue;
    }
    std::unique_ptr<Mixture<Real>> mixture = make_mixture<Real>(options, layout, mixtures, dim, gatings);
    Mixture<Real>* const placed = mixture.get();
    add_residual(kNetwork, "", std::move(mixture), mixtures++, placed);
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

void TransformerOptions::bind(Fields& fields) {
  bind_width(fields, width);
  bind_match(fields, match);
  fields.add("mixer", mixer,
             "transformers: the part of a layer that moves information between the tokens of a sequence");
  fields.add("heads", heads, between(1, 1024), "transformers: heads of attention, a divisor of model.width");
  fields.add("feed_forward", feed_forward, between(1, 65536),
             "transformers: hidden units of networks without a router, and of each expert where model.expert "
             "is not given (default: 4 model.width)");
  fields.add("moe_layers", moe_layers,
             "transformers: the layers with a mixture: a list from 0 on, \"all\" (default) or \"alternate\" "
             "(1, 3, …); [] is the dense model");
  fields.add("positions", positions, {"learned", "rotary"},
             "transformers: positions are learned rows that are added to the rows of tokens "
             "(default), or turn queries and keys");
  fields.add("norm", norm, {"layer", "rms"}, "transformers: normalization before each part (default layer)");
  fields.add("tied_embedding", tied_embedding,
             "transformers: the read-out is the embedding, scores x E^T / √width (default false)");
  fields.add("causal", causal,
             "transformers: a token sees earlier ones and predicts the next (default true); false: it sees "
             "the whole sequence, and the task is masked_tokens");
  fields.add("dropout", dropout, between(0, 0.99),
             "transformers: in training steps, outputs of attention and networks are 0 with this probability "
             "p, else divided by 1 − p (default 0)");
}

std::vector<int> moe_layers(const TransformerOptions& options, int layers) {
  std::vector<int> chosen;
  const std::vector<std::string> given = options.moe_layers.value_or(std::vector<std::string>{"all"});
  if (given.size() == 1 && (given.front() == "all" || given.front() == "alternate")) {
    const bool are_all = given.front() == "all";
    for (int layer = are_all ? 0 : 1; layer < layers; layer += are_all ? 1 : 2) chosen.push_back(layer);
    return chosen;
  }
  for (const std::string& text : given) {
    int layer = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    const bool is_next = chosen.empty() || layer > chosen.back();
    if (!is_number || layer < 0 || layer >= layers || !is_next) refuse_moe_layers(text, layers);
    chosen.push_back(layer);
  }
  return chosen;
}

ExpertOptions transformer_network(const ModelOptions& options) {
  const TransformerOptions& own = own_of(options);
  const int dim = own.width.value_or(1);
  MlpExpertOptions network{.depth = 2, .width = own.hidden_units()};
  if (!own.match) return network;
  const int counted = own.match == Match::active
                          ? std::min(most_experts(options.gating.train), options.experts)
                          : options.experts;
  const std::size_t of_expert =
      make_expert_bank<float>(expert_of(options), {dim, dim, 1})->parameters_per_expert();
  const int routed = routed_experts(options);
  const GatingSetting setting{.input_dim = dim, .experts = routed};
  std::unique_ptr<Gating<float>> learned = make_gating<float>(options.gating.train, setting);
  if (learned->block_size() == 0) learned = make_gating<float>(options.gating.eval, setting);
  const std::size_t of_router =
      make_router<float>(options.router, {.input_dim = dim, .experts = routed})->parameter_count() +
      learned->parameter_count();
  set_matching_width(network, dim, dim, of_router + of_expert * size(counted + options.shared_experts));
  return network;
}

ModelKind transformer_model() {
  ModelKind kind = model_kind("transformer", "a transformer on ids of tokens",
                              {make_transformer<float>, make_transformer<double>},
                              TransformerOptions{.width = 4, .heads = 2, .feed_forward = 3});
  kind.check = check_transformer;
  kind.mixtures = [](const ModelOptions& options) {
    return static_cast<int>(moe_layers(own_of(options), options.layers).size());
  };
  kind.matches_mixture = [](const ModelOptions& options) { return own_of(options).match.has_value(); };
  kind.layout_of_blocks = [](const ModelOptions& options, const Layout& layout) {
    Layout own = layout;
    own.input_dim = own.output_dim = own_of(options).width.value_or(1);
    return own;
  };
  kind.default_expert = [](const ModelOptions& options) {
    return ExpertOptions(MlpExpertOptions{.depth = 2, .width = own_of(options).hidden_units()});
  };
  kind.reads_ids = true;
  kind.is_causal = [](const ModelOptions& options) { return own_of(options).is_causal(); };
  kind.has_attention = [](const ModelOptions& options) {
    return own_of(options).mixer.entry().leaves_attention;
  };
  return kind;
}

}  // namespace moelab
