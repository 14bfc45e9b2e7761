#include "sim/model/model_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/model/router/routers.h"

// To add a model kind, write a new file that defines <name>_model() and add a line here.
// clang-format off
#define MOELAB_MODELS(entry) \
  entry(moe_model)           \
  entry(dense_model)         \
  entry(transformer_model)

// To add a sequence mixer, write a new file that defines <name>_mixer() and add a line here.
#define MOELAB_MIXERS(entry) \
  entry(self_attention_mixer)
// clang-format on

namespace moelab {

MOELAB_TABLE(ModelAxis, MOELAB_MODELS)
MOELAB_TABLE(MixerAxis, MOELAB_MIXERS)

namespace {

void check_gating(const ModelOptions& options, const GatingRule& rule, const std::string& phase) {
  const GatingKind& kind = rule.entry();
  const std::string path = "model.gating." + phase;
  if (kind.check) kind.check(rule.options(), path);
  const int most = most_experts(rule);
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

/// Checks the parameters of two gatings. Gatings of one kind share their parameters. Of two kinds only one
/// may have parameters.
void check_gatings_together(const ModelOptions& options) {
  const GatingRule& train = options.gating.train;
  const GatingRule& eval = options.gating.eval;
  if (train.chosen() == eval.chosen()) return;
  const auto learns = [](const GatingRule& rule) {
    return make_gating<float>(rule, {.input_dim = 1, .experts = 1})->block_size() > 0;
  };
  if (!learns(train) || !learns(eval)) return;
  throw InvalidOption("model.gating.eval",
                      fmt::format("got \"{}\" with parameters of its own, but model.gating.train is \"{}\" "
                                  "with others; needs the same kind, or one that learns nothing",
                                  eval.chosen(), train.chosen()));
}

/// The training gating alone learns, so a threshold that only the other one has stays at its start.
void check_eval_threshold(const ModelOptions& options) {
  const GatingRule& train = options.gating.train;
  const auto is_learnable = [](const GatingRule& rule) {
    const auto* const own = rule.as<TopPGatingOptions>();
    return own && own->learnable;
  };
  if (!is_learnable(options.gating.eval) || is_learnable(train)) return;
  throw InvalidOption("model.gating.eval.learnable",
                      fmt::format("got true, but nothing learns the threshold: model.gating.train{}",
                                  train.as<TopPGatingOptions>() ? ".learnable is false"
                                                                : fmt::format(" is \"{}\"", train.chosen())));
}

/// Checks the fields of a mixture. A dense model with a given width needs none of them. A dense model that
/// matches a mixture needs all of them.
void check_parts(const ModelOptions& options) {
  const char* const needs = "missing; a mixture, and a dense model that matches one, needs it";
  if (options.experts == 0) throw InvalidOption("model.experts", needs);
  if (options.router.chosen().empty()) throw InvalidOption("model.router", needs);
  if (options.expert.chosen().empty() && !options.kind.entry().default_expert)
    throw InvalidOption("model.expert", needs);
}

void check_router(const ModelOptions& options) {
  const RouterKind& router = options.router.entry();
  const ModelKind& kind = options.kind.entry();
  if (!kind.mixtures) return;
  if (router.needs_attention && !options.attention && !(kind.has_attention && kind.has_attention(options)))
    throw no_attention_error(router.name);
  if (router.check) router.check(options.router.options(), routed_experts(options));
}

/// A field that check_parts() requires if it is needed.
template <class Value, class... Arguments>
void add_part(Fields& fields, const std::string& name, Value& value, bool given,
              const Arguments&... arguments) {
  std::optional<Value> part;
  if (given) part = value;
  fields.add(name, part, arguments...);
  value = part.value_or(Value{});
}

/// Binds the options of one kind among the fields of all kinds. Skips a field that an earlier kind has bound.
class KindFields final : public Fields {
 public:
  KindFields(Fields& all, const ModelKind& kind, bool is_chosen, std::vector<std::string>& bound,
             std::vector<InvalidOption>& refused)
      : all_(all), kind_(kind.name), is_chosen_(is_chosen), bound_(bound), refused_(refused) {}

  void boolean(const About& about, bool& value) override {
    pass(about, [&](const About& own) { all_.boolean(own, value); });
  }
  void whole(const About& about, const Range& range, std::int64_t& value) override {
    pass(about, [&](const About& own) { all_.whole(own, range, value); });
  }
  void real(const About& about, const Range& range, double& value) override {
    pass(about, [&](const About& own) { all_.real(own, range, value); });
  }
  void text(const About& about, std::string& value) override {
    pass(about, [&](const About& own) { all_.text(own, value); });
  }
  void choice(const About& about, std::span<const std::string> names, int& index) override {
    pass(about, [&](const About& own) { all_.choice(own, names, index); });
  }
  void any_value(const About& about, AnyValue& value) override {
    pass(about, [&](const About& own) { all_.any_value(own, value); });
  }
  void object(const About& about, const Binding& binding) override {
    pass(about, [&](const About& own) { all_.object(own, binding); });
  }
  void one_of(const About& about, KindChoice& choice) override {
    pass(about, [&](const About& own) { all_.one_of(own, choice); });
  }
  void list(const About& about, int least_length, Elements& elements) override {
    pass(about, [&](const About& own) { all_.list(own, least_length, elements); });
  }
  void map(const About& about, Elements& elements) override {
    pass(about, [&](const About& own) { all_.map(own, elements); });
  }
  void either(const About& about, std::span<const Binding> alternatives) override {
    pass(about, [&](const About& own) { all_.either(own, alternatives); });
  }

 private:
  template <class Visit>
  void pass(const About& about, const Visit& visit) {
    if (std::find(bound_.begin(), bound_.end(), about.name) != bound_.end()) return;
    bound_.push_back(about.name);
    // A field that one kind requires is optional for all kinds together, since other kinds lack it.
    About own = about;
    bool given = is_chosen_;
    if (about.presence == Presence::required) {
      own.presence = Presence::optional;
      own.given = &given;
    }
    visit(own);
    const std::string path = "model." + about.name;
    if (!is_chosen_ && own.given && *own.given)
      refused_.push_back({path, fmt::format("given, but model.kind is not '{}'", kind_)});
    if (is_chosen_ && own.given == &given && !given)
      refused_.push_back({path, fmt::format("missing; model.kind '{}' needs it", kind_)});
  }

  Fields& all_;
  const std::string& kind_;
  bool is_chosen_;
  std::vector<std::string>& bound_;
  std::vector<InvalidOption>& refused_;
};

std::string help_of_kinds() {
  std::vector<std::string> texts;
  for (const ModelKind& kind : ModelAxis::table()) texts.push_back(kind.name + ": " + kind.help);
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

void GatingOptions::bind(Fields& fields) {
  fields.add("train", train, "gates in training");
  fields.add("eval", eval, "gates of test_loss_eval");
  fields.add("balance_rate", balance_rate, at_least(0),
             "loss-free balancing: topk and top1 select by r_e + b_e, sigmoid by σ(γ_e) + b_e; each training "
             "step moves b_e by this rate");
  fields.add("balance_rule", balance_rule, {"sign", "error"},
             "b_e moves against the load error by balance_rate times its sign, or times the error relative "
             "to the mean load (Wang et al. 2024)");
  fields.add("jitter", jitter, fraction(),
             "training steps multiply each entry that the router reads by U[1 − jitter, 1 + jitter]; experts "
             "read the entry itself (Switch Transformer)");
}

void ModelOptions::bind(Fields& fields) {
  std::string name = kind.chosen();
  fields.add_name("kind", name, names_of(ModelAxis::table()), help_of_kinds());
  if (name != kind.chosen()) kind.choose(name);
  fields.add("layers", layers, between(1, 64),
             "mixtures: layers L, from two on h ← h + MoE(h) and a linear read-out; transformers: all "
             "layers, also those without a mixture");
  fields.add("attention", attention,
             "multi-head self-attention over the tokens of a sequence before each layer, learning at the "
             "experts' rate");
  add_part(fields, "experts", experts, experts > 0, between(1, 65536),
           "number of experts E; of mixtures and dense models that match one");
  fields.add("shared_experts", shared_experts, between(0, 65536),
             "mixtures: experts of the same kind that serve every row in addition to the E, without a gate "
             "(DeepSeekMoE)");
  fields.add("null_experts", null_experts, between(0, 65536),
             "mixtures: experts that the router scores as it does the E, with output 0 and nothing to "
             "compute (MoE++)");
  add_part(fields, "router", router, !router.chosen().empty(), "scores γ(x) in R^E (likewise)");
  add_part(fields, "expert", expert, !expert.chosen().empty(), "a bank of E equal networks (likewise)");
  fields.add("gating", gating, "how scores become gates");
  refused.clear();
  std::vector<std::string> bound;
  KindFields own(fields, kind.entry(), true, bound, refused);
  kind.bind(own);
  for (const ModelKind& other : ModelAxis::table()) {
    if (other.name == kind.chosen()) continue;
    AnyOptions options = other.defaults;
    KindFields others(fields, other, false, bound, refused);
    options.bind(others);
  }
}

void bind_match(Fields& fields, std::optional<Match>& match) {
  fields.add("match", match, {"expert", "moe", "active", "total"},
             "dense models: parameters to match, of one expert or the whole mixture; transformers with "
             "moe_layers []: active parameters of a mixture, or all");
}

void bind_width(Fields& fields, std::optional<int>& width) {
  fields.add("width", width, between(1, 65536),
             "dense models: hidden units of each layer, in place of match (needs depth, takes nothing of a "
             "mixture); transformers: width of a token's row");
}

void check(const ModelOptions& options) {
  if (!options.refused.empty()) throw options.refused.front();
  const ModelKind& kind = options.kind.entry();
  if (kind.check) kind.check(options);
  if (!reads_mixture(options)) return;
  check_parts(options);
  check_gating(options, options.gating.train, "train");
  check_gating(options, options.gating.eval, "eval");
  if (options.gating.balance_rate && !options.gating.train.entry().selects) {
    throw InvalidOption("model.gating.balance_rate",
                        fmt::format("given, but model.gating.train is \"{}\"; biases of a selection need {}",
                                    options.gating.train.chosen(), fmt::join(selecting_gatings(), " or ")));
  }
  if (options.gating.balance_rule != BalanceRule::sign && !options.gating.balance_rate)
    throw InvalidOption("model.gating.balance_rule", "given, but model.gating.balance_rate is not");
  check_gatings_together(options);
  check_eval_threshold(options);
  check_router(options);
}

void check(const ModelOptions& options, const Layout& layout) {
  check_labels(options, layout.labels == layout.tokens);
  const bool are_ids = layout.vocabulary > 0;
  if (are_ids != reads_ids(options)) {
    throw InvalidOption("model.kind", are_ids ? "samples are ids of tokens; needs \"transformer\""
                                              : fmt::format("got \"{}\", but samples are no ids of tokens",
                                                            options.kind.chosen()));
  }
  check_image(options, layout.image.size() > 0);
}

void check_image(const ModelOptions& options, bool has_image) {
  if (reads_mixture(options) && options.router.entry().needs_image && !has_image)
    throw no_image_error(options.router.chosen());
  if (!has_image) return;
  if (mixtures_of(options) > 1) {
    throw InvalidOption("model.layers", fmt::format("got {}, needs 1 where an image leads the input: the "
                                                    "experts of a stack read all that the router reads",
                                                    options.layers));
  }
  if (has_projection(options)) {
    throw InvalidOption("model.input_width",
                        "given, but an image leads the input, which only the router reads");
  }
  if (options.attention) {
    throw InvalidOption(
        "model.attention",
        "given, but an image leads the input; needs rows that router and experts both read whole");
  }
}

bool needs_labels(const ModelOptions& options) {
  return mixtures_of(options) > 0 && options.router.entry().needs_labels(options.router.options());
}

void check_labels(const ModelOptions& options, bool has_labels) {
  if (has_labels || !needs_labels(options)) return;
  const std::string field = options.router.entry().needs_labels(options.router.options());
  throw no_labels_error("model.router." + field, field == "kind" ? options.router.chosen() : "oracle");
}

bool is_causal(const ModelOptions& options) {
  const ModelKind& kind = options.kind.entry();
  return kind.is_causal && kind.is_causal(options);
}

int mixtures_of(const ModelOptions& options) {
  const ModelKind& kind = options.kind.entry();
  return kind.mixtures ? kind.mixtures(options) : 0;
}

bool reads_mixture(const ModelOptions& options) {
  const ModelKind& kind = options.kind.entry();
  return mixtures_of(options) > 0 || (kind.matches_mixture && kind.matches_mixture(options));
}

bool is_untaught(const ModelOptions& options) {
  return mixtures_of(options) > 0 && is_trainable(options.router) &&
         !options.router.entry().learns_in_state &&
         !reaches_scores(options.gating.train, routed_experts(options));
}

ExpertOptions expert_of(const ModelOptions& options) {
  const ModelKind& kind = options.kind.entry();
  return options.expert.chosen().empty() && kind.default_expert ? kind.default_expert(options)
                                                                : options.expert;
}

Layout layout_read_by(const ModelOptions& options, const Layout& layout) {
  const ModelKind& kind = options.kind.entry();
  return kind.layout_read ? kind.layout_read(options, layout) : layout;
}

Layout layout_of_blocks(const ModelOptions& options, const Layout& layout) {
  const ModelKind& kind = options.kind.entry();
  const Layout own = layout_read_by(options, layout);
  return kind.layout_of_blocks ? kind.layout_of_blocks(options, own) : own;
}

int router_dim(const ModelOptions& options, const Layout& layout) {
  return layout_of_blocks(options, layout).router_dim();
}

GatingSetting gating_setting(const ModelOptions& options, const Layout& layout) {
  return {router_dim(options, layout), std::max(routed_experts(options), 1)};
}

void set_matching_width(MlpExpertOptions& network, int input_dim, int output_dim, std::size_t target) {
  if (network.depth == 1) return;  // one matrix from inputs to outputs has no width
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

}  // namespace moelab
