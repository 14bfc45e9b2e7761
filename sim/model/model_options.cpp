#include "sim/model/model_options.h"

#include <fmt/format.h>

#include "sim/model/expert/mlp_expert.h"
#include "sim/model/router/attention_aware_router.h"
#include "sim/model/router/cnn_router.h"
#include "sim/model/topology.h"

namespace moelab {
namespace {

void check_gating(const ModelOptions& options, const GatingRule& rule, const std::string& phase) {
  const GatingKind& kind = rule.entry();
  const std::string path = "model.gating." + phase;
  if (kind.check) kind.check(rule.options(), path);
  const int most = kind.most_experts ? kind.most_experts(rule.options()) : 0;
  if (most <= options.experts) return;
  throw InvalidOption(path + ".k",
                      fmt::format("got {}, needs at most model.experts = {}", most, options.experts));
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

void check_dense(const ModelOptions& options) {
  const bool is_dense = options.kind == ModelOptions::Kind::dense;
  if (!is_dense && options.depth) {
    throw InvalidOption("model.depth", "given, but model.kind is not 'dense'");
  }
  if (is_dense == options.match.has_value()) return;
  throw InvalidOption("model.match", is_dense ? "missing; a dense model needs 'expert' or 'moe' to match"
                                              : "given, but model.kind is not 'dense'");
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

}  // namespace

void GatingOptions::bind(Fields& fields) {
  fields.add("train", train, "gates in training");
  fields.add("eval", eval, "gates of test_loss_eval");
  fields.add(
      "balance_rate", balance_rate, at_least(0),
      "loss-free balancing: topk and top1 select by r_e + b_e, sigmoid by σ(γ_e) + b_e, and a training "
      "step moves b_e by this against the sign of the expert's load error");
}

void ModelOptions::bind(Fields& fields) {
  fields.add("kind", kind, {"moe", "dense"}, "a mixture of experts, or one network without a router");
  fields.add(
      "match", match, {"expert", "moe"},
      "dense models: the parameter count to match, of one expert or of the whole mixture that the other "
      "fields describe; the dense network has one more layer than an expert and the nearest width");
  fields.add("depth", depth, between(1, 64),
             "dense models: weight matrices, where not one more than an expert has; at depth 1 there is no "
             "width to match");
  fields.add(
      "reads", reads, {"tokens", "sequence"},
      "dense models on sequences: one token at a time, outputs added, or the whole sequence as one row");
  fields.add("layers", layers, between(1, 64),
             "layers L of the mixture; from two on h ← h + MoE(h) from layer to layer and a linear read-out");
  fields.add("attention", attention,
             "multi-head self-attention over the tokens of a sequence before each layer, learning at the "
             "experts' rate");
  fields.required().add("experts", experts, between(1, 65536), "number of experts E");
  fields.required().add("router", router, "scores γ(x) in R^E");
  fields.required().add("expert", expert, "a bank of E equal networks");
  fields.add("gating", gating, "how scores become gates");
}

void check(const ModelOptions& options) {
  check_gating(options, options.gating.train, "train");
  check_gating(options, options.gating.eval, "eval");
  if (options.gating.balance_rate && !options.gating.train.entry().selects) {
    throw InvalidOption("model.gating.balance_rate",
                        fmt::format("given, but model.gating.train is \"{}\"; biases of a selection need {}",
                                    options.gating.train.chosen(), fmt::join(selecting_gatings(), " or ")));
  }
  check_gatings_together(options);
  check_dense(options);
  if (options.kind == ModelOptions::Kind::moe && !options.attention &&
      options.router.entry().needs_attention) {
    throw no_attention_error(options.router.chosen());
  }
  if (options.kind == ModelOptions::Kind::dense && options.attention &&
      options.reads == ModelOptions::Reads::sequence) {
    throw InvalidOption("model.reads",
                        "got \"sequence\", but model.attention is given, which needs \"tokens\"");
  }
}

void check(const ModelOptions& options, const Layout& layout) {
  const bool has_image = layout.image.size() > 0;
  if (options.router.entry().needs_image && !has_image) throw no_image_error(options.router.chosen());
  if (!has_image) return;
  if (options.kind == ModelOptions::Kind::moe && options.layers > 1) {
    throw InvalidOption("model.layers",
                        fmt::format("got {}, needs 1 where an image leads the input: the experts of a stack "
                                    "read all that the router reads",
                                    options.layers));
  }
  if (options.attention) {
    throw InvalidOption(
        "model.attention",
        "given, but an image leads the input; needs rows that router and experts both read whole");
  }
}

GatingSetting gating_setting(const ModelOptions& options, const Layout& layout) {
  return {layout_read_by(options, layout).router_dim(), options.experts};
}

Layout layout_read_by(const ModelOptions& options, const Layout& layout) {
  const bool reads_sequence =
      options.kind == ModelOptions::Kind::dense && options.reads == ModelOptions::Reads::sequence;
  if (!reads_sequence) return layout;
  return {.input_dim = layout.sample_dim(), .output_dim = layout.target_dim()};
}

ExpertOptions dense_network(const ModelOptions& options, const Layout& layout) {
  const Layout own = layout_read_by(options, layout);
  const std::size_t target = matched_size(options, layout);
  MlpExpertOptions network;
  network.depth = options.depth.value_or(expert_depth(options.expert) + 1);
  network.width = 1;
  if (const MlpExpertOptions* const mlp = options.expert.as<MlpExpertOptions>()) {
    network.init_scale = mlp->init_scale;
  }
  if (network.depth == 1) return network;  // one matrix from inputs to outputs, whatever the width
  const auto count_at = [&](int width) {
    network.width = width;
    return make_expert_bank<float>(network, {own.input_dim, own.output_dim, 1})->parameters_per_expert();
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
  return network;
}

}  // namespace moelab
