/// StableMoE as a router: it learns, a light router learns its assignment, and the light one is frozen.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/train/optimizer.h"
#include "sim/train/trainer.h"
#include "tests/sim/model/gradient_check.h"

namespace moelab {
namespace {

constexpr int kInputs = 6, kOutputs = 2, kExperts = 4, kRows = 256;

Json stable_stack() {
  Json spec = example_model({{"kind", "stable"}}, {{"kind", "mlp"}, {"depth", 2}, {"width", 6}},
                            {{"kind", "topk"}, {"k", 2}}, kExperts);
  spec["layers"] = 2;
  return spec;
}

std::vector<int> assignments(Model<double>& model, const ExampleBatch<double>& batch, int layer) {
  std::vector<double> r(static_cast<std::size_t>(kRows) * kExperts);
  model.route(batch.x.data(), kRows, r.data(), layer);
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
  Model<double> model(stable_stack(), kInputs, kOutputs, 0.0);
  model.initialize({3, 0});
  const ExampleBatch<double> batch(1, kRows, kInputs, kOutputs);
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const auto step = [&](double rate) {
    model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
    for (std::size_t i = 0; i < model.parameters().size(); ++i) {
      model.parameters()[i] -= rate * model.gradient()[i];
    }
  };
  const double start = model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
  // Undecided light routers, one a layer: the distillation starts at log E each.
  Model<double> linear(
      [] {
        Json spec = stable_stack();
        spec["router"] = example_of(kind_named(router_kinds(), "linear"));
        return spec;
      }(),
      kInputs, kOutputs, 0.0);
  linear.initialize({3, 0});
  const double task = linear.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
  CHECK(std::abs(start - task - 2 * std::log(static_cast<double>(kExperts))) < 1e-12);  // rounding
  CHECK(assignments(model, batch, 0) == assignments(linear, batch, 0));

  for (int i = 0; i < 3000; ++i) step(0.05);
  const std::vector<int> main[] = {assignments(model, batch, 0), assignments(model, batch, 1)};
  model.set_progress(kShare);
  const std::vector<int> light[] = {assignments(model, batch, 0), assignments(model, batch, 1)};
  // The first layer's assignment is linear in what the light router reads; the second's is not, and there it
  // must do better than any constant assignment.
  CHECK(agreement(main[0], light[0]) > 0.9);
  double constant = 0;
  for (int e = 0; e < kExperts; ++e) {
    constant = std::max(constant, agreement(main[1], std::vector<int>(kRows, e)));
  }
  CHECK(agreement(main[1], light[1]) > constant);
  const double before = model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss);
  for (int i = 0; i < 100; ++i) step(0.05);
  CHECK(assignments(model, batch, 0) == light[0]);
  CHECK(assignments(model, batch, 1) == light[1]);
  CHECK(model.loss_and_gradient(batch.x.data(), batch.y.data(), kRows, *loss) < before);  // the experts go on
  // Parameters that an optimizer's momentum moves are not what is read.
  for (const ParameterGroup& group : model.groups()) {
    if (group.role != ParameterGroup::Role::router) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) model.parameters()[i] += 1;
  }
  CHECK(assignments(model, batch, 1) == light[1]);
}

TEST_CASE("after the distillation gradients equal central differences") {
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  Model<double> model(stable_stack(), kInputs, kOutputs, 0.0);
  model.initialize({4, 0});
  model.loss_and_gradient(ExampleBatch<double>(1, 8, kInputs, kOutputs).x.data(),
                          ExampleBatch<double>(1, 8, kInputs, kOutputs).y.data(), 8, *loss);
  for (double& w : model.parameters()) w += 0.01;  // no ties between experts
  model.set_progress(0.5);
  const ExampleBatch<double> batch = smooth_batch(model, 8, *loss);
  for (const ParameterGroup& group : model.groups()) {
    double bend = 0;
    const std::vector<double> differences = central_differences(model, batch, *loss, group, bend);
    model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, *loss);
    CHECK(relative_difference(gradient_of(model, group), differences) <= kTolerance);
  }
}

}  // namespace
}  // namespace moelab
