#include "sim/model/blocks/mixture.h"

#include <doctest/doctest.h>

#include "sim/model/router/routers.h"
#include "tests/sim/model/blocks/block_check.h"
#include "tests/sim/model/example_model.h"

namespace moelab::mixture_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 6;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

/// The only block of a model on rows that lie `gap` NaNs apart.
struct MixtureRun {
  MixtureRun(const ModelOptions& options, const Gating<double>* gating = nullptr, int gap = 0)
      : network(options, with_image(options, kLayout)),
        run(network.mixture(0), kRows, network.layout().input_dim, 1, gap) {
    run.pass.gating = gating ? gating : &network.train_gating();
    run.set_inputs(normal_values(1, entries(kRows, run.input_dim)));
  }

  Network<double> network;
  BlockRun run;
};

TEST_CASE("a mixture reads rows that lie apart as those that do not") {
  const std::vector<double> upstream = normal_values(2, kRows * kOutputs);
  for (const RouterKind& router : RouterAxis::table()) {
    if (router.needs_attention) continue;  // no block before this one
    for (const ExpertKind& expert : ExpertAxis::table()) {
      CAPTURE(router.name);
      CAPTURE(expert.name);
      const ModelOptions options =
          model_of_kinds(router.name, expert.name, TopKGatingOptions{.k = 2}, kExperts);
      MixtureRun near(options), apart(options, nullptr, 3);
      CHECK(near.run.forward() == apart.run.forward());
      near.run.backward(upstream);
      apart.run.backward(upstream);
      CHECK(near.run.gradient == apart.run.gradient);
      CHECK(near.run.input_gradient == apart.run.input_gradient);
    }
  }
}

TEST_CASE("what is called between gating and experts sees the pairs, and may still move the experts") {
  const ModelOptions options = model_of_kinds("linear", "constant", TopKGatingOptions{.k = 2}, kExperts);
  MixtureRun plain(options), moved(options);
  const std::vector<ParameterGroup> groups = moved.network.groups();
  REQUIRE(groups.back().role == ParameterGroup::Role::expert);
  int calls = 0;
  ExpertHooks<double> hooks;
  hooks.before = [&](int layer, const Routing<double>& routing) {
    ++calls;
    CHECK(layer == 0);
    CHECK(routing.rows == kRows);
    CHECK(routing.offsets.back() == 2 * kRows);
    for (std::size_t i = groups.back().begin; i < groups.back().end; ++i) moved.run.parameters[i] *= 2;
  };
  moved.run.pass.expert_hooks = &hooks;
  std::vector<double> expected = plain.run.forward();
  for (double& value : expected) value *= 2;
  CHECK(moved.run.forward() == expected);
  CHECK(calls == 1);
}

TEST_CASE("a learned threshold has no gradient under a gating that does not read it") {
  const ModelOptions options =
      model_of_kinds("linear", "linear", TopPGatingOptions{.p = 0.2, .learnable = true}, kExperts);
  const std::unique_ptr<Gating<double>> soft = make_gating<double>(SoftGatingOptions{});
  MixtureRun learning(options), other(options, soft.get());
  const std::size_t threshold = [&] {
    for (const auto& [name, places] : array_places(learning.network)) {
      if (name.starts_with("gating_threshold")) return places.front();
    }
    throw std::runtime_error("no threshold");
  }();
  for (MixtureRun* of : {&learning, &other}) {
    of->run.forward();
    of->run.backward(normal_values(2, kRows * kOutputs));
  }
  CHECK(learning.run.gradient[threshold] != 0);
  CHECK(other.run.gradient[threshold] == 0);
}

TEST_CASE("a step moves the biases of the selection by the rate, against each expert's load error") {
  constexpr double kRate = 0.125;
  ModelOptions options = model_of_kinds("linear", "constant", TopKGatingOptions{.k = 1}, 3);
  options.gating.balance_rate = kRate;
  ExampleModel<double> model(options, {.input_dim = 3, .output_dim = 1}, {1, 0});
  // γ(x) = x: row i goes to its largest column.
  for (const auto& [name, places] : array_places(model.network())) {
    for (std::size_t i = 0; name == "router_weight" && i < places.size(); ++i) {
      model.parameters()[places[i]] = i % 4 == 0;
    }
  }
  const auto biases_after = [&](const std::vector<int>& experts) {
    ExampleBatch<double> batch = model.batch(1, static_cast<int>(experts.size()));
    for (std::size_t i = 0; i < batch.x.size(); ++i) {
      batch.x[i] = static_cast<int>(i % 3) == experts[i / 3] ? 5 : 0;
    }
    model.step(batch, *make_task_loss<double>("mse"));
    return model.model.state.values;
  };
  REQUIRE(model.network().state_arrays().size() == 1);
  CHECK(model.network().state_arrays()[0].name == "selection_bias");
  CHECK(model.model.state.values == std::vector<double>{0, 0, 0});
  CHECK(biases_after({0, 0, 0, 1, 1, 2}) == std::vector<double>{-kRate, 0, kRate});
  CHECK(biases_after({0, 0, 0, 0, 0, 0}) == std::vector<double>{-2 * kRate, kRate, 2 * kRate});
  CHECK(biases_after({0, 1, 2}) == std::vector<double>{-2 * kRate, kRate, 2 * kRate});
}

TEST_CASE("a step under the error rule moves the biases by the rate times the relative load error") {
  constexpr double kRate = 0.125;
  ModelOptions options = model_of_kinds("linear", "constant", TopKGatingOptions{.k = 1}, 3);
  options.gating.balance_rate = kRate;
  options.gating.balance_rule = BalanceRule::error;
  ExampleModel<double> model(options, {.input_dim = 3, .output_dim = 1}, {1, 0});
  for (const auto& [name, places] : array_places(model.network())) {
    for (std::size_t i = 0; name == "router_weight" && i < places.size(); ++i)
      model.parameters()[places[i]] = i % 4 == 0;
  }
  const std::vector<int> experts = {0, 0, 0, 1, 1, 2};
  ExampleBatch<double> batch = model.batch(1, static_cast<int>(experts.size()));
  for (std::size_t i = 0; i < batch.x.size(); ++i)
    batch.x[i] = static_cast<int>(i % 3) == experts[i / 3] ? 5 : 0;
  model.step(batch, *make_task_loss<double>("mse"));
  // Loads 3, 2 and 1 of a mean of 2.
  CHECK(model.model.state.values == std::vector<double>{-kRate / 2, 0, kRate / 2});
}

}  // namespace
}  // namespace moelab::mixture_test
