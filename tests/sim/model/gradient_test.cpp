#include <doctest/doctest.h>

#include <algorithm>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/learning_routers.h"

namespace moelab::gradient_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 7;

const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

TEST_CASE("every router, expert, gating and loss: gradients equal central differences") {
  const std::string first = task_loss_kinds().front().name;
  for (const TaskLossKind& loss : task_loss_kinds()) {
    if (!loss.make) continue;  // of ids alone, see transformer_test.cpp
    for (const RouterKind& router : RouterAxis::table()) {
      for (const ExpertKind& expert : ExpertAxis::table()) {
        // A loss reaches experts and routers through the outputs alone: deep experts for all but the first.
        if (loss.name != first && expert_depth(ExpertOptions::example(expert.name)) < 2) continue;
        for (const NamedGating& gating : example_gatings()) {
          CAPTURE(loss.name);
          CAPTURE(router.name);
          CAPTURE(expert.name);
          CAPTURE(gating.name);
          const ModelOptions options = model_of_kinds(router.name, expert.name, gating.rule, kExperts);
          check_gradients(options, with_image(options, kLayout), kRows, loss.name);
        }
      }
    }
  }
}

TEST_CASE("a linear router with biases, experts of another power: gradients equal central differences") {
  for (const int power : {1, 3, 4}) {
    CAPTURE(power);
    const ModelOptions options =
        example_model(LinearRouterOptions{.bias = true}, PolynomialExpertOptions{.power = power},
                      SoftGatingOptions{}, kExperts);
    const Network<double> network(options, kLayout);
    CHECK(network.parameter_count() - kExperts * network.mixture(0).parameters_per_expert() ==
          (kInputs + 1) * kExperts);
    check_gradients(options, kLayout, kRows);
  }
}

TEST_CASE("dense models: gradients equal central differences") {
  for (const Match match : {Match::expert, Match::moe}) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      ModelOptions options = model_of_kinds("linear", expert.name, SoftGatingOptions{}, kExperts);
      options.kind = DenseOptions{.match = match};
      CAPTURE(static_cast<int>(match));
      CAPTURE(expert.name);
      check_gradients(options, kLayout, kRows);
    }
  }
}

TEST_CASE("a batch that follows a larger one leaves no trace in the gradient") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const ExampleBatch<double> large(1, 40, kInputs, kOutputs), small(2, 3, kInputs, kOutputs);
  for (const ExpertKind& expert : ExpertAxis::table()) {
    for (const NamedGating& gating : example_gatings()) {
      CAPTURE(expert.name);
      CAPTURE(gating.name);
      const ModelOptions options = model_of_kinds("linear", expert.name, gating.rule, kExperts);
      ExampleModel<double> fresh(options, kLayout, {1, 0}), used(fresh);
      used.loss_and_gradient(large, *loss);
      used.loss_and_gradient(small, *loss);
      fresh.loss_and_gradient(small, *loss);
      CHECK(used.gradient() == fresh.gradient());
    }
  }
}

TEST_CASE("the router's gradient is left out where it is frozen") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const ExpertOptions expert = ExpertOptions::example(ExpertAxis::table().front().name);
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    if (kind.needs_attention) continue;  // the attention below it learns
    if (!learns(kind)) continue;
    const RouterOptions router = with_field(RouterOptions::example(kind.name), "trainable", false);
    const ModelOptions options = example_model(router, expert, SoftGatingOptions{}, kExperts);
    ExampleModel<double> model(options, with_image(options, kLayout), {3, 0});
    model.loss_and_gradient(model.batch(17, kRows), *loss);
    int groups = 0;
    for (const ParameterGroup& group : model.groups()) {
      if (group.role != ParameterGroup::Role::router) continue;
      ++groups;
      const std::vector<double> gradient = gradient_of(model, group);
      CHECK_FALSE(group.trainable);
      CHECK(std::all_of(gradient.begin(), gradient.end(), [](double value) { return value == 0; }));
    }
    CHECK(groups > 0);
  }
}

}  // namespace
}  // namespace moelab::gradient_test
