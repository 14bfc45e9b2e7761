#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gating/gated.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::soft_slots_test {
namespace {

constexpr double kRounding = 1e-14;

ModelOptions slotted(int slots, int experts, const ExpertOptions& expert = LinearExpertOptions{}) {
  ModelOptions options =
      example_model(LinearRouterOptions{}, expert, SoftSlotsGatingOptions{.slots = slots}, experts);
  options.gating.eval = SoftSlotsGatingOptions{.slots = slots};
  return options;
}

TEST_CASE("by hand: shares of rows in slots, and of slots in rows") {
  // Powers of the scores: 1 3 over 2 2.
  const std::vector<std::vector<double>> rows = {{0, std::log(3.0)}, {std::log(2.0), std::log(2.0)}};
  const Gated gated(SoftSlotsGatingOptions{}, rows);
  const auto at = [](const AlignedVector<double>& values, int row, int e) {
    return values[entries(row, kernels::kPadding) + size(e)];
  };
  CHECK(std::abs(at(gated.scratch.slots.dispatch, 0, 0) - 1.0 / 3) < kRounding);
  CHECK(std::abs(at(gated.scratch.slots.dispatch, 1, 1) - 2.0 / 5) < kRounding);
  CHECK(std::abs(at(gated.scratch.slots.combine, 0, 1) - 3.0 / 4) < kRounding);
  CHECK(std::abs(gated.gate(0, 1) - 3.0 / 4) < kRounding);
  CHECK(gated.routing().every_pair);
  // A group of one row fills every slot.
  const Gated alone(SoftSlotsGatingOptions{}, rows, {}, false, 1);
  CHECK(at(alone.scratch.slots.dispatch, 0, 0) == 1);
  CHECK(std::abs(alone.gate(0, 0) - 1.0 / 4) < kRounding);
}

TEST_CASE("by hand: an expert answers its slot, and rows get the answers by their shares") {
  ExampleModel<double> model(slotted(1, 2), {.input_dim = 2, .output_dim = 1}, {1, 0});
  for (const auto& [name, places] : array_places(model.network())) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      double& parameter = model.parameters()[places[i]];
      if (name == "router_weight") parameter = i % 3 == 0;          // γ = x
      if (name == "expert_weight_1") parameter = i == 0 || i == 2;  // both answer x_1
      if (name == "expert_bias_1") parameter = i == 1 ? 10 : 0;
    }
  }
  const std::vector<double> x = {0, std::log(3.0), std::log(2.0), std::log(2.0)};
  const std::vector<double> y = model.predict(x, model.network().train_gating());
  // First coordinates 0 and log 2: slots 2/3 log 2 and 2/5 log 2, the second expert's answer 10 more.
  const double first = std::log(2.0) * 2 / 3, second = std::log(2.0) * 2 / 5 + 10;
  CHECK(std::abs(y[0] - (first / 4 + second * 3 / 4)) < 1e-12);
  CHECK(std::abs(y[1] - (first + second) / 2) < 1e-12);
}

TEST_CASE("more slots than one: vectors of their own for each, whatever the numbers of experts and slots") {
  const auto rows_of = [](int slots, int experts) {
    ExampleModel<double> model(slotted(slots, experts), {.input_dim = 3, .output_dim = 2}, {3, 0});
    for (const NamedArray<double>& array : model.arrays()) {
      if (array.name == "gating_slot_weight") return array;
    }
    return NamedArray<double>{};
  };
  CHECK(rows_of(1, 4).values.empty());
  const NamedArray<double> few = rows_of(2, 3), many = rows_of(4, 5);
  CHECK(few.shape == std::vector<std::int64_t>{3, 1, 3});
  CHECK(many.shape == std::vector<std::int64_t>{5, 3, 3});
  for (std::size_t e = 0; e < 3; ++e) {
    for (std::size_t j = 0; j < 3; ++j) CHECK(few.values[e * 3 + j] == many.values[e * 9 + j]);
  }
  double square = 0;
  const NamedArray<double> all = rows_of(9, 100);
  for (const double value : all.values) square += value * value / static_cast<double>(all.values.size());
  const double error = std::sqrt(2.0 / static_cast<double>(all.values.size())) / 3;
  CHECK(std::abs(square - 1.0 / 3) < 5 * error);
}

TEST_CASE("gradients with slots: every expert, in stacks, sequences, groups and behind a CNN") {
  for (const ExpertKind& expert : ExpertAxis::table()) {
    for (const int slots : {1, 2}) {
      CAPTURE(expert.name);
      CAPTURE(slots);
      check_gradients(slotted(slots, 3, ExpertOptions::example(expert.name)),
                      {.input_dim = 4, .output_dim = 3}, 6);
    }
  }
  const MlpExpertOptions deep{.depth = 2, .width = 5};
  ModelOptions stack = slotted(2, 3, deep);
  stack.layers = 2;
  check_gradients(stack, {.input_dim = 4, .output_dim = 2}, 6);
  ModelOptions sequence = slotted(3, 2, deep);
  sequence.attention = AttentionOptions{.heads = 2};
  check_gradients(sequence, {.input_dim = 4, .output_dim = 2, .sequences = true, .tokens = 3, .labels = 3},
                  3);
  ModelOptions image = slotted(2, 3, deep);
  image.router = RouterOptions::example("cnn");
  check_gradients(image, with_image(image, {.input_dim = 4, .output_dim = 2}), 6);
}

TEST_CASE("the gradient in the inputs, in measuring by groups") {
  for (const int slots : {1, 3}) {
    ModelOptions options = slotted(slots, 3, MlpExpertOptions{.depth = 2, .width = 5});
    options.group_samples = 4;  // ten rows: the last group is smaller
    ExampleModel<double> model(options, {.input_dim = 4, .output_dim = 2}, {1, 0});
    const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
    check_input_gradient(model, smooth_batch(model, 10, *loss).batch, *loss);
  }
}

TEST_CASE("what experts that read slots cannot do is refused, with the reason") {
  ModelOptions options = slotted(1, 3);
  check(options);
  options.shared_experts = 1;
  CHECK_THROWS_WITH_AS(check(options),
                       doctest::Contains("model.shared_experts is given, whose experts read rows"),
                       InvalidOption);
}

}  // namespace
}  // namespace moelab::soft_slots_test
