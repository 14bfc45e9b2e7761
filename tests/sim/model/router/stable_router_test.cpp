/// StableMoE as a router: it learns, a light router learns its assignment, and the light one is frozen.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::stable_router_test {
namespace {

constexpr int kInputs = 6, kOutputs = 2, kExperts = 4, kRows = 256;

ExampleModel<double> started(const RouterOptions& router, std::uint64_t seed) {
  ModelOptions options =
      example_model(router, MlpExpertOptions{.depth = 2, .width = 6}, TopKGatingOptions{.k = 2}, kExperts);
  options.layers = 2;
  return {options, {.input_dim = kInputs, .output_dim = kOutputs}, {seed, 0}};
}

/// An array of the parameters or the state.
std::vector<double> array_named(const ExampleModel<double>& model, const std::string& name) {
  for (const NamedArray<double>& array : arrays(model.model)) {
    if (array.name == name) return array.values;
  }
  throw std::invalid_argument("no array " + name);
}

std::vector<int> assignments(ExampleModel<double>& model, const ExampleBatch<double>& batch, int layer) {
  const std::vector<double> r = model.route(batch.x, layer);
  std::vector<int> experts;
  for (std::size_t i = 0; i < kRows; ++i) {
    const double* const row = r.data() + i * kExperts;
    experts.push_back(static_cast<int>(std::max_element(row, row + kExperts) - row));
  }
  return experts;
}

double agreement(const std::vector<int>& a, const std::vector<int>& b) {
  int same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
  return same / static_cast<double>(a.size());
}

TEST_CASE("the light router learns the assignment, and then nothing moves it") {
  constexpr double kShare = 0.1;  // the default of distil_share
  ExampleModel<double> model = started(StableRouterOptions{}, 3);
  const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const double start = model.loss_and_gradient(batch, *loss);
  // Undecided light routers, one a layer: the distillation starts at log E each.
  ExampleModel<double> linear = started(LinearRouterOptions{}, 3);
  const double task = linear.loss_and_gradient(batch, *loss);
  CHECK(std::abs(start - task - 2 * std::log(static_cast<double>(kExperts))) < 1e-12);  // rounding
  CHECK(assignments(model, batch, 0) == assignments(linear, batch, 0));

  for (int i = 0; i < 3000; ++i) model.descend(batch, *loss, 0.05);
  const std::vector<int> main[] = {assignments(model, batch, 0), assignments(model, batch, 1)};
  CHECK(array_named(model, "light_router_frozen_layer1").front() == 0);
  model.model.state.progress = kShare;
  const std::vector<int> light[] = {assignments(model, batch, 0), assignments(model, batch, 1)};
  // The first layer's assignment is linear in what the light router reads; the second's is not, and there it
  // must do better than any constant assignment.
  CHECK(agreement(main[0], light[0]) > 0.9);
  double constant = 0;
  for (int e = 0; e < kExperts; ++e) {
    constant = std::max(constant, agreement(main[1], std::vector<int>(kRows, e)));
  }
  CHECK(agreement(main[1], light[1]) > constant);
  const double before = model.loss_and_gradient(batch, *loss);
  for (int i = 0; i < 100; ++i) model.descend(batch, *loss, 0.05, kShare);
  CHECK(assignments(model, batch, 0) == light[0]);
  CHECK(assignments(model, batch, 1) == light[1]);
  CHECK(model.loss_and_gradient(batch, *loss) < before);  // the experts go on
  CHECK(array_named(model, "light_router_frozen_layer1").front() == 1);
  CHECK(array_named(model, "frozen_light_router_weight_layer1") ==
        array_named(model, "light_router_weight_layer1"));
  // Parameters that an optimizer's momentum moves are not what is read.
  for (const ParameterGroup& group : model.groups()) {
    if (group.role != ParameterGroup::Role::router) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) model.parameters()[i] += 1;
  }
  model.step(batch, *loss, kShare);
  CHECK(assignments(model, batch, 1) == light[1]);
}

TEST_CASE("after the distillation gradients equal central differences") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  ExampleModel<double> model = started(StableRouterOptions{}, 4);
  for (double& w : model.parameters()) w += 0.01;  // no ties between experts
  model.step(model.batch(1, 8), *loss, 0.5);
  CHECK(array_named(model, "light_router_frozen_layer0").front() == 1);
  check_parameter_gradients(model, 8, *loss);
  // The scores come from the first inputs, with a bias or without.
  for (const bool bias : {false, true}) {
    RouterProbe probe(StableRouterOptions{.bias = bias}, 7);
    probe.progress = 1;
    probe.router->begin_step(1, probe.parameters.data(), probe.state.data());
    CHECK(std::count_if(probe.state.begin(), probe.state.end(), [](double value) { return value != 0; }) ==
          RouterProbe::kExperts * (RouterProbe::kInputs + (bias ? 1 : 0)) + 1);
    probe.check_input_gradient();
    for (const double slope : probe.gradient().parameters) CHECK(slope == 0);
  }
}

}  // namespace
}  // namespace moelab::stable_router_test
