/// Transformers: gradients of every option against central differences, what they see, and what they cannot
/// be.

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/small_transformer.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::transformer_test {
namespace {

using namespace small_transformer;

std::size_t count_of(const ModelOptions& options) {
  return Network<double>(options, kLayout).parameter_count();
}

}  // namespace

TEST_CASE("gradients of transformers: places, norms, ties, layers with and without mixtures") {
  ModelOptions options = transformer();
  check_gradients(options, kLayout, kSamples, "cross_entropy");
  own(options).tied_embedding = true;
  check_gradients(options, kLayout, kSamples, "cross_entropy");
  options.layers = 2;
  own(options).moe_layers = std::vector<std::string>{"alternate"};
  own(options).positions = TransformerOptions::Positions::rotary;
  own(options).heads = 3;
  own(options).norm = Normalization::rms;
  check_gradients(options, kLayout, kSamples, "cross_entropy");
  options = dense();
  own(options).heads = 1;
  check_gradients(options, kLayout, kSamples, "cross_entropy");
}

TEST_CASE("gradients of transformers behind every router that they can have") {
  int routers = 0;
  for (const RouterKind& kind : RouterAxis::table()) {
    ModelOptions options = transformer();
    options.router = RouterOptions::example(kind.name);
    try {
      check(options);
    } catch (const InvalidOption& error) {
      CHECK(error.path().starts_with("model.router"));
      continue;
    }
    CAPTURE(kind.name);
    check_gradients(options, kLayout, kSamples, "cross_entropy");
    ++routers;
  }
  CHECK(routers >= 11);
}

TEST_CASE("gradients through blocks of many queries") {
  Layout layout = kLayout;
  layout.tokens = layout.labels = 70;  // three blocks, the last one short
  ModelOptions options = dense();
  own(options).width = 4;
  own(options).heads = 1;
  own(options).norm = Normalization::rms;
  own(options).positions = TransformerOptions::Positions::rotary;
  check_gradients(options, layout, 1, "cross_entropy");
}

TEST_CASE("scores of a token do not depend on later ones, and on earlier ones they do") {
  for (const bool is_rotary : {false, true}) {
    ModelOptions options = transformer();
    options.layers = 2;
    if (is_rotary) own(options).positions = TransformerOptions::Positions::rotary;
    own(options).heads = 1;
    ExampleModel<double> model(options, kLayout, {1, 0});
    ExampleBatch<double> batch = model.batch(1, 1);
    const std::vector<double> before = model.predict(batch.x, model.network().eval_gating());
    batch.x[2] = batch.x[2] == 0 ? 1 : 0;
    const std::vector<double> after = model.predict(batch.x, model.network().eval_gating());
    for (std::size_t i = 0; i < before.size(); ++i) CHECK((before[i] == after[i]) == (i < 2 * kVocabulary));
  }
}

TEST_CASE("one pass of evaluation tells the losses of tokens and the routing of every layer") {
  ModelOptions options = transformer();
  options.layers = 2;
  options.gating.eval = options.gating.train;
  ExampleModel<double> model(options, kLayout, {1, 0});
  const ExampleBatch<double> batch = model.batch(1, 3);
  const Network<double>& network = model.network();
  const EvaluatedSamples<double> evaluated =
      evaluate(model.model, batch.x.data(), batch.y.data(), batch.rows, model.workspace);
  CHECK(evaluated.outputs.empty());
  CHECK(evaluated.token_losses == token_losses(model.model, network.eval_gating(), batch.x.data(),
                                               batch.y.data(), batch.rows, model.workspace));
  REQUIRE(evaluated.layers.size() == static_cast<std::size_t>(network.layers()));
  for (int layer = 0; layer < network.layers(); ++layer) {
    std::vector<double> r(batch.y.size() * static_cast<std::size_t>(network.experts()));
    route(model.model, layer, batch.x.data(), batch.rows, model.workspace, r.data());
    CHECK(evaluated.layers[static_cast<std::size_t>(layer)].probabilities == r);
  }
}

TEST_CASE("token_losses are those of the predictions") {
  ModelOptions options = transformer();
  ExampleModel<double> model(options, kLayout, {1, 0});
  const ExampleBatch<double> batch = model.batch(1, 3);
  const Gating<double>& gating = model.network().train_gating();
  const std::vector<double> losses =
      token_losses(model.model, gating, batch.x.data(), batch.y.data(), batch.rows, model.workspace);
  REQUIRE(losses.size() == batch.y.size());
  const std::vector<double> scores = model.predict(batch.x, gating);
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    double mass = 0;
    for (int v = 0; v < kVocabulary; ++v)
      mass += std::exp(scores[i * kVocabulary + static_cast<std::size_t>(v)]);
    const std::size_t at = i * kVocabulary + static_cast<std::size_t>(batch.y[i]);
    CHECK(losses[i] == doctest::Approx(std::log(mass) - scores[at]).epsilon(1e-12));
    sum += losses[i];
  }
  LossOptions loss;
  loss.task = "cross_entropy";
  CHECK(model.loss_and_gradient(batch, *make_task_loss<double>(loss, true)) ==
        doctest::Approx(sum / static_cast<double>(losses.size())).epsilon(1e-12));
}

TEST_CASE("parameters of transformers, and dense ones that match a mixture") {
  const std::size_t attention = 4 * kWidth * kWidth, norm = 2 * kWidth, router = kWidth * kExperts;
  const auto network = [](std::size_t width) { return (kWidth + 1) * width + (width + 1) * kWidth; };
  const std::size_t ends = (kVocabulary + kTokens) * kWidth + norm + (kWidth + 1) * kVocabulary;
  CHECK(count_of(transformer()) == ends + attention + 2 * norm + router + kExperts * network(3));
  CHECK(count_of(dense()) == ends + attention + 2 * norm + network(3));
  ModelOptions matched = dense();
  own(matched).match = Match::total;
  const auto width_of = [](const ModelOptions& options) {
    return static_cast<std::size_t>(transformer_network(options).as<MlpExpertOptions>()->width);
  };
  // 3 experts of 45 and a router of 18: width 11 has 149, 12 has 162.
  CHECK(width_of(matched) == 11);
  CHECK(count_of(matched) == ends + attention + 2 * norm + network(11));
  own(matched).match = Match::active;
  CHECK(width_of(matched) == 8);  // 2 experts: 108 against 110
  matched.shared_experts = 1;
  CHECK(width_of(matched) == 11);  // 3 experts: 153 against 149
  own(matched).match = Match::total;
  CHECK(width_of(matched) == 15);  // 4 experts: 198 against 201
  matched.shared_experts = 0;
  matched.null_experts = 1;
  CHECK(width_of(matched) == 12);  // a router of 24: 159 against 162
  ModelOptions tied = transformer();
  own(tied).tied_embedding = true;
  CHECK(count_of(transformer()) - count_of(tied) == (kWidth + 1) * kVocabulary);
  own(tied).positions = TransformerOptions::Positions::rotary;
  own(tied).heads = 1;
  CHECK(count_of(transformer()) - count_of(tied) == (kWidth + 1) * kVocabulary + kTokens * kWidth);
}

TEST_CASE("layers with a mixture") {
  const auto layers_of = [](std::optional<std::vector<std::string>> given) {
    TransformerOptions options;
    options.moe_layers = std::move(given);
    return moe_layers(options, 4);
  };
  CHECK(layers_of(std::nullopt) == std::vector<int>{0, 1, 2, 3});
  CHECK(layers_of({{"alternate"}}) == std::vector<int>{1, 3});
  CHECK(layers_of({{"0", "3"}}) == std::vector<int>{0, 3});
  CHECK(layers_of(std::vector<std::string>{}).empty());
  for (const char* const wrong : {"4", "-1", "some", ""}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(layers_of({{"0", wrong}}), InvalidOption);
  }
  CHECK_THROWS_AS(layers_of({{"2", "1"}}), InvalidOption);
}

TEST_CASE("what transformers cannot be") {
  ModelOptions options = transformer();
  own(options).width.reset();
  check_refused(options, "model.width", "missing; a transformer needs the width of its rows");
  options = transformer();
  own(options).heads.reset();
  check_refused(options, "model.heads", "missing; a transformer needs it");
  own(options).heads = 4;
  check_refused(options, "model.heads", "got 4, needs a divisor of model.width = 6");
  own(options).heads = 2;
  own(options).positions = TransformerOptions::Positions::rotary;
  check_refused(options, "model.heads",
                "got 2, but \"rotary\" positions need an even model.width / model.heads = 3");
  options = transformer();
  options.router = StableRouterOptions{};
  check_refused(
      options, "model.router.kind",
      "got \"stable\", which routes by the model's own inputs; the inputs of a transformer are ids");
  options = transformer();
  own(options).match = Match::total;
  check_refused(options, "model.match", "given, but the transformer has mixtures; needs model.moe_layers []");
  options = dense();
  own(options).match = Match::active;
  check(options);
  options.gating.train = SoftGatingOptions{};
  check_refused(options, "model.match",
                "got \"active\", but model.gating.train \"soft\" has no number of experts for a row; needs "
                "\"total\", or a gating with k");
  for (const char* const field : {R"("dropout": 0.1)", R"("causal": false)", R"("heads": 2)"}) {
    CAPTURE(field);
    options = resolve_options<ModelOptions>(Json::parse(std::string("{") + field + "}"));
    REQUIRE(options.refused.size() == 1);
    check_refused(options, options.refused.front().path(), "given, but model.kind is not 'transformer'");
  }
  CHECK_THROWS_AS(check(transformer(), Layout{.input_dim = 3, .output_dim = 2}), InvalidOption);
}

}  // namespace moelab::transformer_test
