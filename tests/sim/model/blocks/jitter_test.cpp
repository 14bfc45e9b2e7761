/// Jitter of what a router reads.

#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::jitter_test {
namespace {

constexpr int kInputs = 3, kExperts = 4, kRows = 500;
const Layout kLayout{.input_dim = kInputs, .output_dim = 2};

ModelOptions jittered(double jitter, const GatingRule& gating = TopKGatingOptions{.k = 2}) {
  ModelOptions options = example_model(LinearRouterOptions{}, LinearExpertOptions{}, gating, kExperts);
  options.gating.jitter = jitter;
  return options;
}

/// γ (n, E) of the last pass without padding.
std::vector<double> scores_of(ExampleModel<double>& model) {
  const MixtureScratch<double>& scratch = model.network().mixture_scratch(0, model.workspace);
  std::vector<double> scores;
  for (int row = 0; row < scratch.routing().rows; ++row) {
    const auto first = scratch.scores.begin() + row * scratch.routing().stride;
    scores.insert(scores.end(), first, first + kExperts);
  }
  return scores;
}

TEST_CASE("training steps multiply what the router reads by U[1 - jitter, 1 + jitter], anew in each") {
  constexpr double kJitter = 0.25;
  ExampleModel<double> model(jittered(kJitter), kLayout, {1, 0});
  for (const auto& [name, places] : array_places(model.network())) {
    for (std::size_t i = 0; name == "router_weight" && i < places.size(); ++i)
      model.parameters()[places[i]] = i % (kInputs + 1) == 0;  // γ_e = x_e, and the last is 0
  }
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const ExampleBatch<double> batch = model.batch(1, kRows);
  model.step(batch, *loss);
  const std::vector<double> first = scores_of(model);
  double mean = 0, square = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    CHECK(first[i * kExperts + kInputs] == 0);
    for (std::size_t j = 0; j < kInputs; ++j) {
      const double factor = first[i * kExperts + j] / batch.x[i * kInputs + j];
      REQUIRE(std::abs(factor - 1) <= kJitter + 1e-12);
      mean += (factor - 1) / (kRows * kInputs);
      square += (factor - 1) * (factor - 1) / (kRows * kInputs);
    }
  }
  const double variance = kJitter * kJitter / 3;
  CHECK(std::abs(mean) < 5 * std::sqrt(variance / (kRows * kInputs)));
  CHECK(std::abs(square / variance - 1) < 5 * std::sqrt(0.8 / (kRows * kInputs)));  // kurtosis 1.8
  model.loss_and_gradient(batch, *loss);
  CHECK(scores_of(model) == first);  // the same step
  model.step(batch, *loss);
  CHECK(scores_of(model) != first);
  // Measuring sees x as it is.
  ExampleModel<double> plain(jittered(0), kLayout, {1, 0});
  plain.parameters() = model.parameters();
  const Gating<double>& gating = model.network().train_gating();
  CHECK(model.predict(batch.x, gating) == plain.predict(batch.x, plain.network().train_gating()));
  CHECK(model.network().state_arrays().back().name == "router_jitter");
  CHECK(plain.network().state_size() == 0);
}

TEST_CASE("gradients with jitter, in stacks, with noise of the gating and biases of the selection") {
  for (const GatingRule& gating :
       {GatingRule(TopKGatingOptions{.k = 2}), GatingRule(NoisyTopKGatingOptions{}),
        GatingRule(SoftSlotsGatingOptions{.slots = 2})}) {
    for (const int layers : {1, 3}) {
      CAPTURE(gating.chosen());
      CAPTURE(layers);
      ModelOptions options = jittered(0.3, gating);
      options.expert = MlpExpertOptions{.depth = 2, .width = 5};
      options.layers = layers;
      if (gating.entry().selects) options.gating.balance_rate = 0.01;
      check_gradients(options, kLayout, 7);
    }
  }
  ModelOptions options = jittered(0.3);
  options.router = RouterOptions::example("cnn");
  check_gradients(options, with_image(options, kLayout), 7);
}

}  // namespace
}  // namespace moelab::jitter_test
