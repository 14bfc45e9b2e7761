/// Every router, gating and loss on the routing with every expert, stack, attention and kind of data: they
/// train, or are refused with the reason that their table declares.

#include <doctest/doctest.h>

#include "sim/train/experiment.h"
#include "tests/sim/model/example.h"

namespace moelab::kinds_product_test {
namespace {

constexpr int kExperts = 4, kSamples = 24;

/// What a cell of the product is made of.
struct Parts {
  std::string router = "linear", expert = "linear", generator = "gaussian_mixture";
  GatingRule gating = TopKGatingOptions{.k = 2};
  int layers = 1;
  bool attention = false;
  std::string loss = {};
  int shared = 0, null = 0;
};

ExperimentOptions experiment_of(const Parts& parts) {
  ExperimentOptions options;
  static_cast<OneOf<GeneratorAxis>&>(options.data) = OneOf<GeneratorAxis>::example(parts.generator);
  options.data.train_samples = kSamples;
  options.data.test_samples = 8;
  options.model.experts = kExperts;
  options.model.router = RouterOptions::example(parts.router);
  options.model.expert = ExpertOptions::example(parts.expert);
  options.model.gating.train = parts.gating;
  options.model.layers = parts.layers;
  options.model.shared_experts = parts.shared;
  options.model.null_experts = parts.null;
  if (parts.attention) options.model.attention = AttentionOptions{.heads = 1};
  if (!parts.loss.empty()) options.loss.coefficient(parts.loss) = 0.01;
  options.train.lr = 1e-7;
  options.train.batch_size = 12;
  options.train.steps = 3;
  return options;
}

/// Why such a cell has to be refused, in words of the refusal; empty where it has to run.
std::string reason(const Parts& parts) {
  const auto router_options = RouterOptions::named(parts.router);
  const RouterKind& router = router_options.entry();
  const auto data_options = DataOptions::named(parts.generator);
  const GeneratorKind& data = data_options.entry();
  const bool has_slots = parts.gating.as<SoftSlotsGatingOptions>() != nullptr;
  if (has_slots && parts.shared > 0) return "whose experts read slots";
  if (router.needs_attention && !parts.attention) return "needs it";
  if (!parts.loss.empty()) {
    const AuxiliaryLossKind& loss = auxiliary_loss_kinds()[auxiliary_loss_place(parts.loss)];
    const int tokens = data.tokens ? data.tokens(data.example) : 1;
    if (loss.needs_sequences && tokens == 1) return "needs samples of several tokens";
    if (loss.needs_noise && !parts.gating.as<NoisyTopKGatingOptions>()) return "with learned noise";
    if (loss.needs_moves) return "needs train.optimizer \"minimum_norm\"";
    if (loss.path == AuxiliaryPath::pair_outputs && has_slots) return "they read slots";
  }
  if (router.needs_image && !data.has_image) return "router needs images";
  if (router.needs_labels(router.example) && !data.has_labels(data.example))
    return "the true cluster of every row";
  if (data.has_image && parts.layers > 1) return "needs 1 where an image leads the input";
  if (data.has_image && parts.attention) return "given, but an image leads the input";
  return "";
}

void check_parts(const Parts& parts) {
  CAPTURE(parts.router);
  CAPTURE(parts.expert);
  CAPTURE(parts.generator);
  CAPTURE(parts.gating.chosen());
  CAPTURE(parts.layers);
  CAPTURE(parts.attention);
  CAPTURE(parts.loss);
  CAPTURE(parts.shared);
  CAPTURE(parts.null);
  const std::string expected = reason(parts);
  CAPTURE(expected);
  std::string refusal;
  try {
    Experiment<float> experiment(experiment_of(parts), {1, 0});
    // Squares of squares, behind gates without a bound, may grow out of float.
    const bool may_diverge = parts.expert == "polynomial" && parts.layers > 1;
    const TrainState state = experiment.train().state;
    CHECK((state == TrainState::done || (may_diverge && state == TrainState::diverged)));
  } catch (const InvalidOption& error) {
    CHECK_FALSE(error.path().empty());
    refusal = error.message();
  }
  if (expected.empty()) {
    CHECK(refusal == "");
  } else {
    CHECK(refusal.find(expected) != std::string::npos);
  }
}

/// Kinds of data that differ in what models see of them: rows, sequences, an image before the row, samples of
/// several clusters.
const std::vector<std::string> kGenerators = {"gaussian_mixture", "token_topics", "image_clusters",
                                              "dictionary"};

/// Runs `check` on stacks and attention, or none of it, on every kind of data.
template <class Check>
void for_each_surrounding(Parts parts, const Check& check) {
  for (const std::string& generator : kGenerators) {
    for (const int layers : {1, 2}) {
      for (const bool attention : {false, true}) {
        parts.generator = generator;
        parts.layers = layers;
        parts.attention = attention;
        check(parts);
      }
    }
  }
}

TEST_CASE("every router with every expert, stack, attention and data") {
  for (const RouterKind& router : RouterAxis::table()) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      Parts parts;
      parts.router = router.name;
      parts.expert = expert.name;
      for_each_surrounding(parts, check_parts);
    }
  }
}

TEST_CASE("every gating with every expert, stack, attention and data") {
  for (const NamedGating& gating : example_gatings()) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      Parts parts;
      parts.gating = gating.rule;
      parts.expert = expert.name;
      for_each_surrounding(parts, check_parts);
    }
  }
}

TEST_CASE("every router with every gating, beside shared and null experts or none") {
  for (const RouterKind& router : RouterAxis::table()) {
    for (const NamedGating& gating : example_gatings()) {
      for (const auto& [shared, null] :
           {std::pair(0, 0), std::pair(1, 0), std::pair(0, 2), std::pair(2, 1)}) {
        Parts parts;
        parts.router = router.name;
        parts.gating = gating.rule;
        parts.shared = shared;
        parts.null = null;
        parts.attention = router.needs_attention;
        parts.generator = router.needs_image ? "image_clusters" : "token_topics";
        check_parts(parts);
      }
    }
  }
}

TEST_CASE("every loss on the routing with every gating, stack, attention and data") {
  for (const AuxiliaryLossKind& loss : auxiliary_loss_kinds()) {
    for (const NamedGating& gating : example_gatings()) {
      Parts parts;
      parts.loss = loss.name;
      parts.gating = gating.rule;
      for_each_surrounding(parts, check_parts);
    }
  }
}

TEST_CASE("what a kind needs of the rest of a scenario stands in its help") {
  const auto says = [](const auto& choice, const std::string& name) {
    for (const KindChoice::Kind& kind : choice.kinds()) {
      if (kind.name == name) return kind.help.find("; needs ") != std::string::npos;
    }
    return false;
  };
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    const bool needs = kind.needs_image || kind.needs_attention || kind.needs_labels(kind.example);
    CHECK(kind.needed.empty() != needs);
    CHECK(says(RouterOptions(), kind.name) == needs);
  }
  for (const GatingKind& kind : GatingAxis::table()) {
    CAPTURE(kind.name);
    CHECK(says(GatingRule(), kind.name) == (kind.name == "soft_slots"));
  }
  for (const AuxiliaryLossKind& kind : auxiliary_loss_kinds()) {
    CAPTURE(kind.name);
    CHECK((kind.help.find("; needs ") != std::string::npos) ==
          (kind.needs_sequences || kind.needs_noise || kind.needs_moves));
  }
}

}  // namespace
}  // namespace moelab::kinds_product_test
