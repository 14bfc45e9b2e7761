/// Models of several layers: h ← h + MoE(h), a linear read-out.

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab::stack_test {
namespace {

constexpr int kInputs = 5, kOutputs = 2, kExperts = 3, kRows = 8;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};
const Layout kBranch{.input_dim = kInputs, .output_dim = kInputs};  // of a layer of a stack
const MlpExpertOptions kDeep{.depth = 2, .width = 6};

ModelOptions stack_model(int layers, const GatingRule& gating,
                         const RouterOptions& router = LinearRouterOptions{}) {
  ModelOptions options = example_model(router, kDeep, gating, kExperts);
  options.layers = layers;
  return options;
}

TEST_CASE("gradients of a stack agree with central differences, in parameters and inputs") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const NamedGating& gating : example_gatings()) {
    CAPTURE(gating.name);
    for (const int layers : {1, 3}) {
      ExampleModel<double> model(stack_model(layers, gating.rule), kLayout, {7, 0});
      CHECK(model.groups().size() == (layers == 1 ? 2u : 2u * static_cast<std::size_t>(layers) + 1));
      check_input_gradient(model, check_parameter_gradients(model, kRows, *loss), *loss);
    }
  }
}

TEST_CASE("gradients of a stack of every router agree with central differences") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const RouterKind& router : RouterAxis::table()) {
    if (router.needs_image) continue;  // no stack has one
    CAPTURE(router.name);
    ModelOptions options = example_model(RouterOptions::example(router.name), LinearExpertOptions{},
                                         TopKGatingOptions{.k = 2}, kExperts);
    // What a router takes from the layer before is held fixed, and of the second layer it is: with a third
    // one it would move.
    options.layers = 2;
    ExampleModel<double> model(options, kLayout, {7, 0});
    check_parameter_gradients(model, kRows, *loss);
  }
}

TEST_CASE("a stack of two layers is the residual formula worked out by its own layers") {
  const GatingRule gating = TopKGatingOptions{.k = 2};
  ExampleModel<double> stack(stack_model(2, gating), kLayout, {3, 0});
  const ExampleBatch<double> batch = stack.batch(1, kRows);
  const std::vector<double> outputs = stack.predict(batch.x, stack.network().train_gating());

  // The same from single layers with the stack's parameters.
  std::vector<double> h = batch.x;
  std::size_t offset = 0;
  for (int l = 0; l < 2; ++l) {
    ExampleModel<double> single(stack_model(1, gating), kBranch, {});
    std::copy_n(stack.parameters().begin() + static_cast<std::ptrdiff_t>(offset), single.parameters().size(),
                single.parameters().begin());
    offset += single.parameters().size();
    const std::vector<double> branch = single.predict(h, single.network().train_gating());
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += branch[i];
  }
  std::vector<double> weight, bias;
  for (const NamedArray<double>& array : stack.arrays()) {
    if (array.name == "readout_weight_1") weight = array.values;
    if (array.name == "readout_bias_1") bias = array.values;
  }
  REQUIRE(weight.size() == kInputs * kOutputs);
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t o = 0; o < kOutputs; ++o) {
      double expected = bias[o];
      for (std::size_t j = 0; j < kInputs; ++j) expected += weight[o * kInputs + j] * h[i * kInputs + j];
      CHECK(outputs[i * kOutputs + o] == doctest::Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("layers start from weights of their own, the first from those of a single layer") {
  ExampleModel<double> stack(stack_model(3, SoftGatingOptions{}), kBranch, {3, 0});
  ExampleModel<double> single(stack_model(1, SoftGatingOptions{}), kBranch, {3, 0});
  const std::size_t size = single.parameters().size();
  CHECK(std::equal(single.parameters().begin(), single.parameters().end(), stack.parameters().begin()));
  for (std::size_t i = 0; i < size; ++i) {
    if (stack.parameters()[i] == 0) continue;  // biases and padding
    CHECK(stack.parameters()[i] != stack.parameters()[size + i]);
    CHECK(stack.parameters()[size + i] != stack.parameters()[2 * size + i]);
  }
}

TEST_CASE("routing by permuted inputs is routing by shuffled columns of the router") {
  const std::vector<int> permutation = {3, 0, 4, 1, 2};
  for (const int layer : {0, 1}) {
    ExampleModel<double> model(stack_model(2, SoftGatingOptions{}), kLayout, {3, 0});
    const ExampleBatch<double> batch = model.batch(1, kRows);
    const std::vector<double> permuted = model.route(batch.x, layer, permutation);
    // W is kept transposed, (d, padded(E)): its row π(j) meets coordinate j of x after the shuffle.
    const ParameterGroup group = model.groups()[static_cast<std::size_t>(2 * layer)];
    const std::size_t stride = (group.end - group.begin) / kInputs;
    const AlignedVector<double> before = model.parameters();
    for (std::size_t j = 0; j < kInputs; ++j) {
      std::copy_n(
          before.begin() + static_cast<std::ptrdiff_t>(group.begin + j * stride), stride,
          model.parameters().begin() +
              static_cast<std::ptrdiff_t>(group.begin + static_cast<std::size_t>(permutation[j]) * stride));
    }
    const std::vector<double> shuffled = model.route(batch.x, layer);
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      CHECK(permuted[i] == doctest::Approx(shuffled[i]).epsilon(1e-12));
    }
  }
}

TEST_CASE("biases of the selection even out the loads and leave the gates' formula alone") {
  const GatingRule top1_raw = TopKGatingOptions{.k = 1, .renormalize = false};
  ModelOptions options = example_model(LinearRouterOptions{.trainable = false},
                                       ExpertOptions::example("constant"), top1_raw, kExperts);
  options.gating.eval = top1_raw;
  options.gating.balance_rate = 0.01;
  ExampleModel<double> model(options, kLayout, {11, 0});
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  constexpr int kMany = 300;
  ExampleBatch<double> batch = model.batch(1, kMany);
  for (double& x : batch.x) x += 1;  // rows to one side: the router prefers some experts
  const auto spread = [&] {
    const std::vector<std::int64_t> loads = model.expert_loads(batch.x, model.network().eval_gating());
    CHECK(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}) == kMany);
    return *std::max_element(loads.begin(), loads.end()) - *std::min_element(loads.begin(), loads.end());
  };
  const std::int64_t before = spread();
  for (int step = 0; step < 200; ++step) model.step(batch, *loss);
  CHECK(before > 30);
  CHECK(spread() <= 15);  // a step of 0.01 moves a few rows across the border
  // Gates are the probabilities themselves.
  const GatingScratch<double>& gated = model.network().mixture_scratch(0, model.workspace).gating;
  for_each_pair(gated.routing, [&](int row, int e) {
    const std::size_t at = static_cast<std::size_t>(row * gated.routing.stride + e);
    CHECK(gated.routing.gates[at] == gated.probabilities[at]);
  });
}

}  // namespace
}  // namespace moelab::stack_test
