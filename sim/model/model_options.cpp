#include "sim/model/model_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.h"
#include "sim/model/expert/expert.h"
#include "sim/model/network.h"
#include "sim/model/router/routers.h"
#include "sim/model/transformer.h"

namespace moelab {
namespace {

void check_gating(const ModelOptions& options, const GatingRule& rule, const std::string& phase) {
  const GatingKind& kind = rule.entry();
  const std::string path = "model.gating." + phase;
  if (kind.check) kind.check(rule.options(), path);
  const int most = kind.most_experts ? kind.most_experts(rule.options()) : 0;
  if (kind.name == "soft_slots" && options.shared_experts > 0) {
    throw InvalidOption(path,
                        "got \"soft_slots\", whose experts read slots, but model.shared_experts is given, "
                        "whose experts read rows");
  }
  if (most <= routed_experts(options)) return;
  throw InvalidOption(path + ".k", fmt::format("got {}, needs at most model.experts{} = {}", most,
                                               options.null_experts > 0 ? " + model.null_experts" : "",
                                               routed_experts(options)));
}

std::vector<std::string> selecting_gatings() {
  std::vector<std::string> names;
  for (const GatingKind& kind : GatingAxis::table()) {
    if (kind.selects) names.push_back(kind.name);
  }
  return names;
}

/// Gatings of one kind share their parameters; those of two kinds cannot both have some.
void check_gatings_together(const ModelOptions& options) {
  const GatingRule& train = options.gating.train;
  const GatingRule& eval = options.gating.eval;
  if (train.chosen() == eval.chosen()) return;
  const auto learns = [](const GatingRule& rule) {
    return make_gating<float>(rule, {.input_dim = 1, .experts = 1})->block_size() > 0;
  };
  if (!learns(train) || !learns(eval)) return;
  throw InvalidOption(
      "model.gating.eval",
      fmt::format("got \"{}\" with parameters of its own, but model.gating.train is \"{}\" with "
                  "others; needs the same kind, or one that learns nothing",
                  eval.chosen(), train.chosen()));
}

void check_router(const ModelOptions& options) {
  const RouterKind& kind = options.router.entry();
  if (options.kind != ModelOptions::Kind::dense && kind.check)
    kind.check(options.router.options(), routed_experts(options));
}

void check_dense(const ModelOptions& options) {
  if (options.kind == ModelOptions::Kind::transformer) return;
  const bool is_dense = options.kind == ModelOptions::Kind::dense;
  if (options.match == ModelOptions::Match::active || options.match == ModelOptions::Match::total)
    throw InvalidOption("model.match", "got a match of transformers; a dense model needs 'expert' or 'moe'");
  if (!is_dense && options.depth) {
    throw InvalidOption("model.depth", "given, but model.kind is not 'dense'");
  }
  if (!is_dense && options.width) {
    throw InvalidOption("model.width", "given, but model.kind is not 'dense'");
  }
  if (is_dense && options.input_width) {
    throw InvalidOption("model.input_width",
                        "given, but model.kind is 'dense'; a projection leads a mixture");
  }
  if (options.width) {
    if (options.match)
      throw InvalidOption("model.width", "given, but model.match says which width; needs one");
    if (!options.depth)
      throw InvalidOption("model.depth", "missing; a dense model with model.width needs it");
    return;
  }
  if (is_dense == options.match.has_value()) return;
  throw InvalidOption("model.match", is_dense ? "missing; a dense model needs 'expert' or 'moe' to match, or "
                                                "model.width and model.depth"
                                              : "given, but model.kind is not 'dense'");
}

void check_reads(const ModelOptions& options) {
  if (options.kind == ModelOptions::Kind::dense && options.attention &&
      options.reads == ModelOptions::Reads::sequence) {
    throw InvalidOption("model.reads",
                        "got \"sequence\", but model.attention is given, which needs \"tokens\"");
  }
}

/// What a mixture is made of. Dense models of a given width need none of it, those that match one all.
void check_parts(const ModelOptions& options) {
  const char* const needs = "missing; a mixture, and a dense model that matches one, needs it";
  if (options.experts == 0) throw InvalidOption("model.experts", needs);
  if (options.router.chosen().empty()) throw InvalidOption("model.router", needs);
  if (options.kind != ModelOptions::Kind::transformer && options.expert.chosen().empty())
    throw InvalidOption("model.expert", needs);
}

/// A projection hides the rows that some routers need as they are.
void check_projection(const ModelOptions& options) {
  if (!options.input_width) return;
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

/// Free parameters that a dense model matches: of one expert, or of the mixture and its read-out.
std::size_t matched_size(ModelOptions options, const Layout& layout) {
  const bool one_expert = options.match == ModelOptions::Match::expert;
  options.kind = ModelOptions::Kind::moe;
  const GatingSetting setting = gating_setting(options, layout);
  std::unique_ptr<Gating<float>> learned = make_gating<float>(options.gating.train, setting);
  if (learned->block_size() == 0) learned = make_gating<float>(options.gating.eval, setting);
  std::size_t count = 0;
  for (const PlacedBlock<float>& placed :
       make_blocks<float>(options, layout, {learned->block_size() > 0 ? learned.get() : nullptr})) {
    if (placed.mixture && one_expert) return placed.mixture->parameters_per_expert();
    if (placed.mixture || placed.layer == options.layers) count += placed.block->parameter_count();
  }
  return count;
}

/// A field that check_parts() asks for where it is needed.
template <class Value, class... Arguments>
void add_part(Fields& fields, const std::string& name, Value& value, bool given,
              const Arguments&... arguments) {
  std::optional<Value> part;
  if (given) part = value;
  fields.add(name, part, arguments...);
  value = part.value_or(Value{});
}

}  // namespace

void GatingOptions::bind(Fields& fields) {
  fields.add("train", train, "gates in training");
  fields.add("eval", eval, "gates of test_loss_eval");
  fields.add(
      "balance_rate", balance_rate, at_least(0),
      "loss-free balancing: topk and top1 select by r_e + b_e, sigmoid by σ(γ_e) + b_e, and a training "
      "step moves b_e by this against the sign of the expert's load error");
  fields.add(
      "jitter", jitter, fraction(),
      "training steps multiply what the router reads, entry by entry, by U[1 − jitter, 1 + jitter] (Switch "
      "Transformer); the experts read it as it is");
}

void ModelOptions::bind(Fields& fields) {
  fields.add("kind", kind, {"moe", "dense", "transformer"},
             "a mixture of experts, one network without a router, or a transformer on ids of tokens");
  fields.add(
      "match", match, {"expert", "moe", "active", "total"},
      "dense models: the parameter count to match, of one expert or of the whole mixture that the other "
      "fields describe; the dense network has one more layer than an expert and the nearest width. "
      "Transformers "
      "with moe_layers []: their networks match a mixture in parameters that a row passes (active), or in "
      "all");
  fields.add("width", width, between(1, 65536),
             "dense models: hidden units of each layer, in place of match; depth is needed, too, and nothing "
             "of a mixture. Transformers: width of a token's row");
  fields.add("depth", depth, between(1, 64),
             "dense models: weight matrices, where not one more than an expert has; at depth 1 there is no "
             "width to match");
  fields.add(
      "reads", reads, {"tokens", "sequence"},
      "dense models on sequences: one token at a time, outputs added, or the whole sequence as one row");
  fields.add(
      "layers", layers, between(1, 64),
      "layers L of the mixture; from two on h ← h + MoE(h) from layer to layer and a linear read-out; of a "
      "transformer, with those that have no mixture");
  fields.add("input_width", input_width, between(1, 65536),
             "mixtures: a linear layer that learns at the experts' rate maps rows to this width before the "
             "first layer, so that routers and experts read what it makes of them");
  fields.add("attention", attention,
             "multi-head self-attention over the tokens of a sequence before each layer, learning at the "
             "experts' rate");
  add_part(fields, "experts", experts, experts > 0, between(1, 65536),
           "number of experts E; of mixtures and dense models that match one");
  fields.add("shared_experts", shared_experts, between(0, 65536),
             "mixtures: experts of the same kind that serve every row beside the E, no gate before them "
             "(DeepSeekMoE)");
  fields.add(
      "null_experts", null_experts, between(0, 65536),
      "mixtures: experts that the router scores as it does the E, with output 0 and nothing to compute "
      "(MoE++)");
  add_part(fields, "router", router, !router.chosen().empty(), "scores γ(x) in R^E (likewise)");
  add_part(fields, "expert", expert, !expert.chosen().empty(), "a bank of E equal networks (likewise)");
  fields.add("gating", gating, "how scores become gates");
  transformer.bind(fields);
}

void check(const ModelOptions& options) {
  check_dense(options);
  check_transformer(options);
  if (!reads_mixture(options)) return check_reads(options);
  check_parts(options);
  check_transformer_router(options);
  check_gating(options, options.gating.train, "train");
  check_gating(options, options.gating.eval, "eval");
  if (options.gating.balance_rate && !options.gating.train.entry().selects) {
    throw InvalidOption("model.gating.balance_rate",
                        fmt::format("given, but model.gating.train is \"{}\"; biases of a selection need {}",
                                    options.gating.train.chosen(), fmt::join(selecting_gatings(), " or ")));
  }
  check_gatings_together(options);
  check_projection(options);
  if (options.kind == ModelOptions::Kind::moe && !options.attention &&
      options.router.entry().needs_attention) {
    throw no_attention_error(options.router.chosen());
  }
  check_router(options);
  check_reads(options);
}

bool needs_labels(const ModelOptions& options) {
  return mixtures_of(options) > 0 && options.router.entry().needs_labels(options.router.options());
}

void check_labels(const ModelOptions& options, bool has_labels) {
  if (has_labels || !needs_labels(options)) return;
  const std::string field = options.router.entry().needs_labels(options.router.options());
  throw no_labels_error("model.router." + field, field == "kind" ? options.router.chosen() : "oracle");
}

void check(const ModelOptions& options, const Layout& layout) {
  check_labels(options, layout.labels == layout.tokens);
  check_ids(options, layout.vocabulary > 0);
  check_image(options, layout.image.size() > 0);
}

void check_image(const ModelOptions& options, bool has_image) {
  if (reads_mixture(options) && options.router.entry().needs_image && !has_image)
    throw no_image_error(options.router.chosen());
  if (!has_image) return;
  if (options.kind == ModelOptions::Kind::moe && options.layers > 1) {
    throw InvalidOption("model.layers",
                        fmt::format("got {}, needs 1 where an image leads the input: the experts of a stack "
                                    "read all that the router reads",
                                    options.layers));
  }
  if (options.input_width) {
    throw InvalidOption("model.input_width",
                        "given, but an image leads the input, which only the router reads");
  }
  if (options.attention) {
    throw InvalidOption(
        "model.attention",
        "given, but an image leads the input; needs rows that router and experts both read whole");
  }
}

GatingSetting gating_setting(const ModelOptions& options, const Layout& layout) {
  return {layout_of_blocks(options, layout).router_dim(), std::max(routed_experts(options), 1)};
}

void check_ids(const ModelOptions& options, bool are_ids) {
  if (are_ids == (options.kind == ModelOptions::Kind::transformer)) return;
  throw InvalidOption("model.kind", are_ids ? "samples are ids of tokens; needs \"transformer\""
                                            : "got \"transformer\", but samples are no ids of tokens");
}

ExpertOptions dense_network(const ModelOptions& options, const Layout& layout) {
  const Layout own = layout_read_by(options, layout);
  if (options.width) return MlpExpertOptions{.depth = options.depth.value_or(2), .width = *options.width};
  const std::size_t target = matched_size(options, layout);
  MlpExpertOptions network;
  network.depth = options.depth.value_or(expert_depth(options.expert) + 1);
  network.width = 1;
  if (const MlpExpertOptions* const mlp = options.expert.as<MlpExpertOptions>()) {
    network.init_scale = mlp->init_scale;
  }
  set_matching_width(network, own.input_dim, own.output_dim, target);
  return network;
}

void set_matching_width(MlpExpertOptions& network, int input_dim, int output_dim, std::size_t target) {
  if (network.depth == 1) return;  // one matrix from inputs to outputs, whatever the width
  const auto count_at = [&](int width) {
    network.width = width;
    return make_expert_bank<float>(network, {input_dim, output_dim, 1})->parameters_per_expert();
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
  network.width = miss_above < miss_below ? high : low;
}

namespace {

[[noreturn]] void refuse_moe_layers(const std::string& got, int layers) {
  throw InvalidOption("model.moe_layers",
                      fmt::format("got {}, needs \"all\", \"alternate\", or different layers from 0 to {}, "
                                  "ascending",
                                  got, layers - 1));
}

}  // namespace

void TransformerOptions::bind(Fields& fields) {
  fields.add("heads", heads, between(1, 1024), "transformers: heads of attention, a divisor of model.width");
  fields.add(
      "feed_forward", feed_forward, between(1, 65536),
      "transformers: hidden units of networks without a router, and of each expert where model.expert is "
      "not given (default: 4 model.width)");
  fields.add(
      "moe_layers", moe_layers,
      "transformers: layers whose network is a mixture: a list of layers from 0 on, \"all\" (default) or "
      "\"alternate\" (1, 3, …); [] is the dense model");
  fields.add(
      "positions", positions, {"learned", "rotary"},
      "transformers: places in the sequence are learned rows that are added to those of tokens (default), or "
      "turn queries and keys");
  fields.add("norm", norm, {"layer", "rms"}, "transformers: normalization before each part (default layer)");
  fields.add("tied_embedding", tied_embedding,
             "transformers: the read-out is the embedding, scores x E^T / √width (default false)");
  fields.add(
      "causal", causal,
      "transformers: a token sees those before it, and the task is the next one (default true); false: it "
      "sees the whole sequence, and the task is masked_tokens");
  fields.add(
      "dropout", dropout, between(0, 0.99),
      "transformers: in training steps entries of what attention and networks add to a row are 0 with this "
      "probability p, the others divided by 1 − p (default 0)");
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

void check(const TransformerOptions& options, std::optional<int> width, int layers) {
  if (!width) throw InvalidOption("model.width", "missing; a transformer needs the width of its rows");
  if (!options.heads) throw InvalidOption("model.heads", "missing; a transformer needs it");
  if (*width % *options.heads != 0) {
    throw InvalidOption("model.heads",
                        fmt::format("got {}, needs a divisor of model.width = {}", *options.heads, *width));
  }
  if (options.positions == TransformerOptions::Positions::rotary && *width / *options.heads % 2 != 0) {
    throw InvalidOption("model.heads",
                        fmt::format("got {}, but \"rotary\" positions need an even model.width / "
                                    "model.heads = {}",
                                    *options.heads, *width / *options.heads));
  }
  moe_layers(options, layers);
}

void check_no_transformer(const TransformerOptions& options) {
  const auto refuse = [](const char* field, bool given) {
    if (given)
      throw InvalidOption(std::string("model.") + field, "given, but model.kind is not 'transformer'");
  };
  refuse("heads", options.heads.has_value());
  refuse("feed_forward", options.feed_forward.has_value());
  refuse("moe_layers", options.moe_layers.has_value());
  refuse("positions", options.positions.has_value());
  refuse("norm", options.norm.has_value());
  refuse("tied_embedding", options.tied_embedding.has_value());
  refuse("causal", options.causal.has_value());
  refuse("dropout", options.dropout.has_value());
}

}  // namespace moelab
