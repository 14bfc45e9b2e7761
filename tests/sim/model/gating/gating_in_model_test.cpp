/// What gatings with noise, a state or a look across rows do within a model.

#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::gating_in_model_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 8;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

ModelOptions model_with(const GatingRule& train, int layers = 1) {
  ModelOptions options =
      example_model(LinearRouterOptions{}, MlpExpertOptions{.depth = 2, .width = 6}, train, kExperts);
  options.layers = layers;
  return options;
}

TEST_CASE("losses on probabilities and scores reach the noise, gates and layers below") {
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  for (const GatingRule& rule :
       {GatingRule(NoisyTopKGatingOptions{}), GatingRule(SigmoidGatingOptions{.k = 2}),
        GatingRule(ReluGatingOptions{.k = 2, .l1_start = 0.1}),
        GatingRule(SoftSlotsGatingOptions{.slots = 2}),
        GatingRule(DenseToSparseGatingOptions{.threshold = 0.1})}) {
    CAPTURE(rule.chosen());
    ExampleModel<double> model(model_with(rule, 2), kLayout, {5, 0});
    LossOptions losses;
    losses.coefficient("switch") = 0.5;
    losses.coefficient("z") = 0.1;
    losses.coefficient("load") = 0.5;
    model.losses = AuxiliaryLosses(losses);
    Engine engine(2);
    for (const auto& [name, places] : array_places(model.network())) {
      for (const std::size_t place : places) model.parameters()[place] += 0.1 * draw_normal(engine);
    }
    check_parameter_gradients(model, kRows, *task);
  }
}

TEST_CASE("rows are routed together in a step's batch, and in measuring by as many as a batch has") {
  constexpr int kGroup = 6, kMany = 2000;  // more than one block of evaluation, and a rest
  for (const GatingRule& rule :
       {GatingRule(ExpertChoiceGatingOptions{.capacity_factor = 1}), GatingRule(SinkhornGatingOptions{}),
        GatingRule(TopKGatingOptions{.k = 2, .capacity = {.capacity_factor = 0.7}})}) {
    CAPTURE(rule.chosen());
    ModelOptions options = model_with(rule);
    options.group_samples = kGroup;
    ExampleModel<double> grouped(options, kLayout, {3, 0});
    options.group_samples = 0;
    ExampleModel<double> together(options, kLayout, {3, 0});
    const std::vector<double> x = grouped.batch(1, kMany).x;
    const std::vector<double> outputs = grouped.predict(x, grouped.network().train_gating());
    std::vector<double> by_groups;
    for (std::size_t first = 0; first < kMany; first += kGroup) {
      const std::size_t end = std::min<std::size_t>(kMany, first + kGroup);
      const std::vector<double> some(x.begin() + static_cast<std::ptrdiff_t>(first * kInputs),
                                     x.begin() + static_cast<std::ptrdiff_t>(end * kInputs));
      const std::vector<double> part = together.predict(some, together.network().train_gating());
      by_groups.insert(by_groups.end(), part.begin(), part.end());
    }
    CHECK(outputs == by_groups);
    CHECK(outputs != together.predict(x, together.network().train_gating()));
    // A step's batch is one group, whatever the size of those in measuring.
    const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
    const ExampleBatch<double> batch = grouped.batch(2, 20);
    CHECK(grouped.loss_and_gradient(batch, *loss) == together.loss_and_gradient(batch, *loss));
    CHECK_FALSE(separates_samples<double>(grouped.network(), {*loss}));
  }
}

TEST_CASE("steps move the noise and the factor of the loss on gates; measuring does not") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const ModelOptions options = model_with(NoisyTopKGatingOptions{}, 2);
  ExampleModel<double> model(options, kLayout, {3, 0});
  const ExampleBatch<double> batch = model.batch(1, kRows);
  const State start = model.model.state;
  const double first = model.loss_and_gradient(batch, *loss);
  CHECK(model.loss_and_gradient(batch, *loss) == first);
  const std::vector<double> measured = model.predict(batch.x, model.network().train_gating());
  CHECK(model.model.state == start);
  model.step(batch, *loss);
  CHECK(model.loss_and_gradient(batch, *loss) != first);
  CHECK(model.predict(batch.x, model.network().train_gating()) == measured);
  // Each layer draws independently.
  REQUIRE(start.values.size() == 6);
  CHECK(start.values[0] != start.values[3]);
  CHECK(model.model.state.values[1] == 1);

  ExampleModel<double> relu(model_with(ReluGatingOptions{.k = 1, .l1_start = 0.5}), kLayout, {3, 0});
  CHECK(relu.model.state.values == std::vector<double>{0.5});
  relu.step(batch, *loss);
  CHECK(relu.model.state.values[0] == doctest::Approx(0.6));  // two of four scores are positive
}

TEST_CASE("two gatings of different kinds cannot both learn") {
  ModelOptions options = model_with(NoisyTopKGatingOptions{});
  options.gating.eval = NoisyTopKGatingOptions{.k = 1};
  check(options);
  options.gating.eval = TopPGatingOptions{.learnable = true};
  CHECK_THROWS_WITH_AS(check(options), doctest::Contains("model.gating.eval: got \"topp\" with parameters"),
                       InvalidOption);
  options.gating.train = TopPGatingOptions{};
  options.gating.eval = NoisyTopKGatingOptions{.k = 1};
  check(options);
}

TEST_CASE("a threshold of measuring that training does not learn is refused") {
  ModelOptions options = model_with(SoftGatingOptions{});
  options.gating.eval = TopPGatingOptions{.learnable = true};
  CHECK_THROWS_WITH_AS(check(options),
                       "model.gating.eval.learnable: got true, but nothing learns the threshold: "
                       "model.gating.train is \"soft\"",
                       InvalidOption);
  options.gating.train = TopPGatingOptions{};
  CHECK_THROWS_WITH_AS(check(options), doctest::Contains("model.gating.train.learnable is false"),
                       InvalidOption);
  options.gating.train = TopPGatingOptions{.learnable = true};
  check(options);
}

}  // namespace
}  // namespace moelab::gating_in_model_test
