/// Models of several layers: h ← h + MoE(h), a linear read-out.

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "tests/sim/model/gradient_check.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kOutputs = 2, kExperts = 3, kRows = 8;

Json stack_model(int layers, const Json& gating,
                 const Json& expert = {{"kind", "mlp"}, {"depth", 2}, {"width", 6}}) {
  Json spec =
      example_model("linear", resolve(Shape::variant(expert_kinds()), expert, "expert"), gating, kExperts);
  spec["layers"] = layers;
  return spec;
}

TEST_CASE("gradients of a stack agree with central differences, in parameters and inputs") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  for (const NamedGating& gating : example_gatings()) {
    CAPTURE(gating.name);
    for (const int layers : {1, 3}) {
      Model<double> model(stack_model(layers, gating.spec), kInputs, kOutputs, 0.0);
      model.initialize({7, 0});
      const ExampleBatch<double> batch = smooth_batch(model, kRows, *loss);
      CHECK(model.groups().size() == (layers == 1 ? 2u : 2u * static_cast<std::size_t>(layers) + 1));
      for (const ParameterGroup& group : model.groups()) {
        double bend = 0;
        const std::vector<double> differences = central_differences(model, batch, *loss, group, bend);
        model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, *loss);
        CHECK(relative_difference(gradient_of(model, group), differences) <= kTolerance);
      }
      check_input_gradient(model, batch, *loss);
    }
  }
}

TEST_CASE("a stack of two layers is the residual formula worked out by its own layers") {
  const Json gating = {{"kind", "topk"}, {"k", 2}};
  Model<double> stack(stack_model(2, gating), kInputs, kOutputs, 0.0);
  stack.initialize({3, 0});
  const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
  std::vector<double> outputs(kRows * kOutputs);
  stack.predict(batch.x.data(), kRows, stack.train_gating(), outputs.data());

  // The same from single layers with the stack's parameters.
  std::vector<double> h(batch.x.begin(), batch.x.end());
  std::size_t offset = 0;
  for (int l = 0; l < 2; ++l) {
    Model<double> single(stack_model(1, gating), kInputs, kInputs, 0.0);
    std::copy_n(stack.parameters().begin() + static_cast<std::ptrdiff_t>(offset), single.parameters().size(),
                single.parameters().begin());
    offset += single.parameters().size();
    std::vector<double> branch(h.size());
    single.predict(h.data(), kRows, single.train_gating(), branch.data());
    for (std::size_t i = 0; i < h.size(); ++i) h[i] += branch[i];
  }
  std::vector<double> weight, bias;
  for (const NamedArray<double>& array : stack.arrays()) {
    if (array.name == "readout_weight_1") weight.assign(array.values.begin(), array.values.end());
    if (array.name == "readout_bias_1") bias.assign(array.values.begin(), array.values.end());
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
  Model<double> stack(stack_model(3, "soft"), kInputs, kInputs, 0.0);
  Model<double> single(stack_model(1, "soft"), kInputs, kInputs, 0.0);
  stack.initialize({3, 0});
  single.initialize({3, 0});
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
    Model<double> model(stack_model(2, "soft"), kInputs, kOutputs, 0.0);
    model.initialize({3, 0});
    const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
    std::vector<double> permuted(kRows * kExperts), shuffled(kRows * kExperts);
    model.route(batch.x.data(), kRows, permuted.data(), layer, permutation);
    // W is kept transposed, (d, padded(E)): its row π(j) meets coordinate j of x after the shuffle.
    const ParameterGroup group = model.groups()[static_cast<std::size_t>(2 * layer)];
    const std::size_t stride = (group.end - group.begin) / kInputs;
    const std::vector<double> before(model.parameters().begin(), model.parameters().end());
    for (std::size_t j = 0; j < kInputs; ++j) {
      std::copy_n(
          before.begin() + static_cast<std::ptrdiff_t>(group.begin + j * stride), stride,
          model.parameters().begin() +
              static_cast<std::ptrdiff_t>(group.begin + static_cast<std::size_t>(permutation[j]) * stride));
    }
    model.route(batch.x.data(), kRows, shuffled.data(), layer);
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      CHECK(permuted[i] == doctest::Approx(shuffled[i]).epsilon(1e-12));
    }
  }
}

TEST_CASE("biases of the selection even out the loads and leave the gates' formula alone") {
  Json spec = stack_model(1, {{"kind", "topk"}, {"k", 1}}, {{"kind", "constant"}});
  spec["gating"]["eval"] = {{"kind", "topk"}, {"k", 1}, {"renormalize", false}};
  spec["gating"]["balance_rate"] = 0.01;
  spec["router"]["trainable"] = false;
  Model<double> model(spec, kInputs, kOutputs, 0.0);
  model.initialize({11, 0});
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  constexpr int kMany = 300;
  ExampleBatch<double> batch(1, kMany, kInputs, kOutputs);
  for (double& x : batch.x) x += 1;  // rows to one side: the router prefers some experts
  const auto spread = [&] {
    const std::vector<std::int64_t> loads = model.expert_loads(batch.x.data(), kMany, model.eval_gating());
    CHECK(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}) == kMany);
    return *std::max_element(loads.begin(), loads.end()) - *std::min_element(loads.begin(), loads.end());
  };
  const std::int64_t before = spread();
  for (int step = 0; step < 200; ++step)
    model.loss_and_gradient(batch.x.data(), batch.y.data(), kMany, *loss);
  CHECK(before > 30);
  CHECK(spread() <= 15);  // a step of .01 moves a few rows across the border
  // Gates are the probabilities themselves.
  const Routing<double>& routing = model.layer(0).routing();
  for_each_pair(routing, [&](int row, int e) {
    const std::size_t at = static_cast<std::size_t>(row * routing.stride + e);
    CHECK(routing.gates[at] == model.layer(0).state().probabilities[at]);
  });
}

}  // namespace
}  // namespace moelab
