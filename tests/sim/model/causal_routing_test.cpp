/// Routers of causal transformers that look at other tokens: against NumPy (causal_routing_reference.py wrote
/// causal_routing_reference.json), and which of them look ahead.

#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/model_reference.h"
#include "tests/sim/model/small_transformer.h"

namespace moelab::causal_routing_test {
namespace {

using namespace small_transformer;

/// A router in a stack: the first layer of some is another router's.
ModelOptions stack_of(const RouterOptions& router) {
  ModelOptions options = transformer();
  options.layers = 2;
  options.router = router;
  return options;
}

/// Tokens whose probabilities in the second layer change when the third token does.
std::vector<int> moved_tokens(const ModelOptions& options) {
  ExampleModel<double> model(options, kLayout, {1, 0});
  ExampleBatch<double> batch = model.batch(1, 1);
  const std::vector<double> before = model.route(batch.x, 1);
  batch.x[2] = batch.x[2] == 0 ? 1 : 0;
  const std::vector<double> after = model.route(batch.x, 1);
  std::vector<int> tokens;
  for (int t = 0; t < kTokens; ++t) {
    const auto first = before.begin() + t * kExperts;
    if (!std::equal(first, first + kExperts, after.begin() + t * kExperts)) tokens.push_back(t);
  }
  return tokens;
}

bool is_accepted(const ModelOptions& options) {
  try {
    check(options);
  } catch (const InvalidOption&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("causal routing by other tokens is that of the reference: probabilities, loss and gradients") {
  check_token_reference("causal_routing_reference.json", "cross_entropy");
}

TEST_CASE("a router of a causal model whose scores depend on later rows says so, and no other does") {
  std::vector<RouterOptions> routers;
  for (const RouterKind& kind : RouterAxis::table()) routers.push_back(RouterOptions::example(kind.name));
  using Head = AttentionAwareRouterOptions::Head;
  using Similarity = SimilarityAwareRouterOptions::Similarity;
  using Weights = AdaptiveClusteringRouterOptions::Weights;
  routers.push_back(AttentionAwareRouterOptions{.head = Head::posterior});
  routers.push_back(SimilarityAwareRouterOptions{.similarity = Similarity::learned});
  routers.push_back(AdaptiveClusteringRouterOptions{.weights = Weights::random});
  int ahead = 0, mixing = 0;
  for (const RouterOptions& router : routers) {
    const ModelOptions options = stack_of(router);
    if (!is_accepted(options)) continue;
    CAPTURE(router.chosen());
    const RouterKind& kind = router.entry();
    const bool is_ahead = kind.looks_ahead && !kind.looks_ahead(router.options()).empty();
    const std::vector<int> moved = moved_tokens(options);
    CHECK((!moved.empty() && moved.front() < 2) == is_ahead);
    ahead += is_ahead;
    mixing += kind.mixes_tokens;
    ModelOptions whole = options;
    own(whole).causal = false;
    // Where the whole sequence is seen, all tokens change with one, unless the router sees none.
    if (kind.mixes_tokens) CHECK(moved_tokens(whole) == std::vector<int>{0, 1, 2, 3});
  }
  CHECK(ahead == 1);
  CHECK(mixing == 5);
}

TEST_CASE("routers that look at attention have that of the layer, whether it is causal or not") {
  using Head = AttentionAwareRouterOptions::Head;
  for (const bool is_causal : {true, false}) {
    for (const Head head : {Head::lowest_entropy, Head::posterior}) {
      CAPTURE(is_causal);
      ModelOptions options = stack_of(AttentionAwareRouterOptions{.head = head});
      own(options).causal = is_causal;
      own(options).positions = TransformerOptions::Positions::rotary;
      own(options).heads = 3;
      own(options).moe_layers = std::vector<std::string>{"1"};
      check_gradients(options, kLayout, kSamples, is_causal ? "cross_entropy" : "masked_tokens");
    }
  }
}

TEST_CASE("gradients through many blocks of queries and the weights that a router sees") {
  Layout layout = kLayout;
  layout.tokens = layout.labels = 34;  // a block of queries and two more
  ModelOptions options = transformer();
  own(options).width = 4;
  options.router = AttentionAwareRouterOptions{};
  check_gradients(options, layout, 1, "cross_entropy");
}

TEST_CASE("routing by the mean of a sequence: one way for all tokens, or by those before; alone, linear") {
  constexpr int kInputs = 4;
  const auto routed = [](const RouterOptions& router, const Layout& layout) {
    ModelOptions options;
    options.experts = kExperts;
    options.router = router;
    options.expert = MlpExpertOptions{.depth = 2, .width = 3};
    ExampleModel<double> model(options, layout, {1, 0});
    return model.route(model.batch(1, 2).x);
  };
  Layout layout{.input_dim = kInputs, .output_dim = 2};
  CHECK(routed(SequenceMeanRouterOptions{}, layout) == routed(LinearRouterOptions{}, layout));
  layout.sequences = layout.target_per_token = true;
  layout.tokens = kTokens;
  const std::vector<double> whole = routed(SequenceMeanRouterOptions{}, layout);
  const auto of = [](const std::vector<double>& r, int row) {
    return std::vector<double>(r.begin() + row * kExperts, r.begin() + (row + 1) * kExperts);
  };
  for (int row = 0; row < 2 * kTokens; ++row) CHECK(of(whole, row) == of(whole, row / kTokens * kTokens));
  CHECK(of(whole, 0) != of(whole, kTokens));
  // In a causal model the first token is its own mean.
  ModelOptions options = transformer();
  options.router = SequenceMeanRouterOptions{};
  ExampleModel<double> model(options, kLayout, {1, 0}), linear(transformer(), kLayout, {1, 0});
  const ExampleBatch<double> batch = model.batch(1, 1);
  const std::vector<double> by_mean = model.route(batch.x), by_token = linear.route(batch.x);
  CHECK(of(by_mean, 0) == of(by_token, 0));
  for (int t = 1; t < kTokens; ++t) CHECK(of(by_mean, t) != of(by_token, t));
}

}  // namespace moelab::causal_routing_test
