#include <doctest/doctest.h>

#include <algorithm>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/data/data_of.h"
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

TEST_CASE("unit experts: gradients equal central differences, and no gradient changes a length") {
  const Layout layout{.input_dim = kInputs, .output_dim = 1};
  for (const char* kind : {"linear", "polynomial", "relu", "gelu", "sigmoid"}) {
    for (const int shared : {0, 2}) {
      CAPTURE(kind);
      CAPTURE(shared);
      const Json expert = {{"kind", kind}, {"normalize", "unit"}};
      ModelOptions options =
          example_model(LinearRouterOptions{.bias = true}, resolve_options<ExpertOptions>(expert),
                        SoftGatingOptions{}, kExperts);
      options.shared_experts = shared;
      check_gradients(options, layout, kRows);

      ExampleModel<double> model(options, layout, {3, 0});
      for (double& value : model.parameters()) value *= 1.7;
      const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
      const ExampleBatch<double> batch = model.batch(1, kRows);
      model.loss_and_gradient(batch, *loss);
      Vector along = Vector::Zero(kExperts), length = Vector::Zero(kExperts);
      for (const auto& [name, places] : array_places(model.network())) {
        if (name != "expert_weight_1" && name != "expert_bias_1") continue;
        const std::size_t width = places.size() / kExperts;
        for (std::size_t i = 0; i < places.size(); ++i) {
          const auto e = static_cast<Eigen::Index>(i / width);
          const double value = model.parameters()[places[i]], slope = model.gradient()[places[i]];
          along[e] += value * slope;
          length[e] += std::abs(value * slope);
        }
      }
      CHECK(length.sum() > 0);  // a rectifier may be off at every row
      CHECK((along.cwiseAbs() - 1e-13 * length).maxCoeff() <= 0);

      // The function ignores the lengths, and the saved arrays have length 1.
      const auto before = model.loss_and_gradient(batch, *loss);
      for (const NamedArray<double>& array : model.arrays()) {
        if (array.name != "expert_weight_1") continue;
        CHECK(array.shape == std::vector<std::int64_t>{kExperts, kInputs});
      }
      std::vector<NamedArray<double>> saved = model.arrays();
      for (std::size_t i = 0; i + 1 < saved.size(); ++i) {
        if (!saved[i].unit_with_next) continue;
        const auto rows = static_cast<std::size_t>(saved[i].shape[0]);
        REQUIRE(saved[i + 1].shape == std::vector<std::int64_t>{static_cast<std::int64_t>(rows)});
        for (std::size_t e = 0; e < rows; ++e) {
          double square = saved[i + 1].values[e] * saved[i + 1].values[e];
          for (std::size_t j = 0; j < kInputs; ++j) {
            const double value = saved[i].values[e * kInputs + j];
            square += value * value;
          }
          CHECK(square == doctest::Approx(1).epsilon(1e-14));
        }
      }
      auto place = saved.begin();
      for (const auto& [name, places] : array_places(model.network())) {
        for (std::size_t i = 0; i < places.size(); ++i) model.parameters()[places[i]] = place->values[i];
        ++place;
      }
      CHECK(model.loss_and_gradient(batch, *loss) == doctest::Approx(before).epsilon(1e-13));
    }
  }
}

TEST_CASE("unit experts have one output") {
  const ModelOptions options =
      example_model(LinearRouterOptions{}, LinearExpertOptions{.normalize = ExpertLength::unit},
                    SoftGatingOptions{}, kExperts);
  CHECK_THROWS_WITH_AS(Network<double>(options, kLayout),
                       doctest::Contains("needs one layer and data of one output"), InvalidOption);
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
