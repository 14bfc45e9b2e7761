/// Models with attention before each layer.

#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::model_with_attention_test {
namespace {

constexpr int kInputs = 5, kOutputs = 2, kExperts = 3, kTokens = 4, kSamples = 3;

const Layout kLayout{.input_dim = kInputs,
                     .output_dim = kOutputs,
                     .sequences = true,
                     .tokens = kTokens,
                     .target_per_token = true,
                     .labels = kTokens};

ModelOptions mixture(const AttentionOptions& attention, const RouterOptions& router, int layers) {
  ModelOptions options =
      example_model(router, MlpExpertOptions{.depth = 2, .width = 6}, TopKGatingOptions{.k = 2}, kExperts);
  options.attention = attention;
  options.layers = layers;
  return options;
}

TEST_CASE("attention in one layer and in a stack: gradients equal central differences") {
  const AttentionOptions blocks[] = {
      {.heads = 1}, {.heads = 3, .key_dim = 2, .causal = true}, {.heads = 2, .residual = true}};
  for (const AttentionOptions& attention : blocks) {
    for (const char* router : {"linear", "similarity_aware", "attention_aware"}) {
      for (const int layers : {1, 2}) {
        CAPTURE(attention.heads);
        CAPTURE(router);
        CAPTURE(layers);
        check_gradients(mixture(attention, RouterOptions::example(router), layers), kLayout, kSamples);
      }
    }
  }
}

TEST_CASE("attention before a dense model, and below a frozen router: gradients equal central differences") {
  ModelOptions dense = mixture({.heads = 2}, LinearRouterOptions{}, 1);
  dense.kind = DenseOptions{.match = Match::moe};
  check_gradients(dense, kLayout, kSamples);

  const ModelOptions frozen = mixture({.heads = 2}, AttentionAwareRouterOptions{.trainable = false}, 1);
  const ExampleModel<double> model(frozen, kLayout, {3, 0});
  for (const ParameterGroup& group : model.groups()) {
    CHECK(group.trainable == (group.role == ParameterGroup::Role::expert));
  }
  CHECK(model.groups().size() == 3);
  check_gradients(frozen, kLayout, kSamples);
}

TEST_CASE("detached, the posterior routes as before, and the attention learns nothing through it") {
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  const auto with_router = [](const AttentionAwareRouterOptions& router) {
    return ExampleModel<double>(mixture({.heads = 2}, router, 1), kLayout, {3, 0});
  };
  ExampleModel<double> model = with_router({}), detached = with_router({.detach = true});
  const double loss = model.loss_and_gradient(model.batch(1, kSamples), *task);
  CHECK(detached.loss_and_gradient(detached.batch(1, kSamples), *task) == loss);
  for (const ParameterGroup& group : model.groups()) {
    const bool is_attention = group.part == ParameterGroup::Part::layers;
    CHECK((gradient_of(model, group) == gradient_of(detached, group)) != is_attention);
  }
}

TEST_CASE("gradients in the inputs of a model with attention equal central differences") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const int layers : {1, 2}) {
    ExampleModel<double> model(mixture({.heads = 2}, AttentionAwareRouterOptions{}, layers), kLayout, {7, 0});
    check_input_gradient(model, smooth_batch(model, kSamples, *loss).batch, *loss);
  }
}

TEST_CASE("models that attention does not fit are refused") {
  const auto path_of = [](const ModelOptions& options, const Layout& layout) -> std::string {
    try {
      const Model<float> model(options, layout, {});
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return "";
  };
  ModelOptions whole = mixture({.heads = 2}, LinearRouterOptions{}, 1);
  CHECK(path_of(whole, kLayout).empty());
  whole.kind = DenseOptions{.match = Match::moe, .reads = DenseOptions::Reads::sequence};
  CHECK(path_of(whole, kLayout) == "model.reads");
  ModelOptions without = mixture({.heads = 2}, AttentionAwareRouterOptions{}, 1);
  without.attention.reset();
  CHECK(path_of(without, kLayout) == "model.attention");
  for (const RouterKind& kind : RouterAxis::table()) {
    if (!kind.needs_image) continue;
    const ModelOptions image = mixture({.heads = 2}, RouterOptions::example(kind.name), 1);
    CHECK(path_of(image, with_image(image, {.input_dim = kInputs, .output_dim = kOutputs})) ==
          "model.attention");
  }
}

}  // namespace
}  // namespace moelab::model_with_attention_test
