#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/loss/loss.h"
#include "tests/sim/model/example.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 7;

/// Step of the central differences: their truncation error, step² f‴/6, is then near 1e-12.
constexpr double kStep = 1e-6;
/// Largest difference allowed, relative to the largest entry of the parameter group. Rounding of the loss
/// leaves ε L / step ≈ 2e-10 L in a difference, L below 100 here: 1e-6 is out of its reach for gradients of
/// order one, and far below any error of a formula.
constexpr double kTolerance = 1e-6;

/// The largest difference over the largest entry; zero gradients must be zero.
double relative_difference(const std::vector<double>& gradient, const std::vector<double>& differences) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    largest = std::max({largest, std::abs(differences[i]), std::abs(gradient[i])});
    const double difference = std::abs(gradient[i] - differences[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst > 0 ? worst / largest : 0;
}

/// One-sided differences that disagree by more than this tell of a kink within the step; of a smooth loss
/// they differ by step · f″, near 1e-5 at most.
constexpr double kSmooth = 1e-3;

/// Central differences of the loss in the parameters [begin, end), padding included (which must not matter).
/// `bend` becomes the largest disagreement of the one-sided differences.
std::vector<double> central_differences(Model<double>& model, const ExampleBatch<double>& batch,
                                        const TaskLoss<double>& loss, const ParameterGroup& group,
                                        double& bend) {
  std::vector<double> differences;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    double& parameter = model.parameters()[i];
    const double kept = parameter;
    parameter = kept + kStep;
    const double above = model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, loss);
    parameter = kept - kStep;
    const double below = model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, loss);
    parameter = kept;
    differences.push_back((above - below) / (2 * kStep));
    const double here = model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, loss);
    bend = std::max(bend, std::abs((above - here) - (here - below)) / kStep);
  }
  return differences;
}

/// The first batch on which the loss is smooth around the model's parameters: no ReLU and no selection
/// changes within a step, told by one-sided differences that agree. The gradient under test has no say in it.
ExampleBatch<double> smooth_batch(Model<double>& model, const TaskLoss<double>& loss) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ExampleBatch<double> batch(seed, kRows, kInputs, kOutputs);
    double bend = 0;
    for (const ParameterGroup& group : {model.router_group(), model.expert_group()}) {
      central_differences(model, batch, loss, group, bend);
    }
    if (bend < kSmooth) return batch;
  }
  throw UserError("batch", "every batch has a kink");
}

std::vector<double> gradient_of(const Model<double>& model, const ParameterGroup& group) {
  return {model.gradient().begin() + static_cast<std::ptrdiff_t>(group.begin),
          model.gradient().begin() + static_cast<std::ptrdiff_t>(group.end)};
}

void check_gradients(const Json& spec, const std::string& loss_name) {
  Model<double> model(spec, kInputs, kOutputs, 0.0);
  model.initialize({3, 0});
  // Biases start at zero, where a unit whose inputs are all dead sits on its kink: move every parameter a
  // little.
  Engine engine(1);
  for (const auto& [name, places] : array_places(spec, kInputs, kOutputs)) {
    for (const std::size_t place : places) model.parameters()[place] += 0.1 * draw_normal(engine);
  }
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>(loss_name);
  const ExampleBatch<double> batch = smooth_batch(model, *loss);
  const bool router_learns = model.has_router() && model.train_gating().kind != Gating::Kind::top1;
  for (const ParameterGroup& group : {model.router_group(), model.expert_group()}) {
    const bool is_router = group.begin == 0 && model.has_router();
    if (group.begin == group.end) continue;
    double bend = 0;
    const std::vector<double> differences = central_differences(model, batch, *loss, group, bend);
    model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, *loss);
    std::vector<double> gradient = gradient_of(model, group);
    CAPTURE(is_router);
    CHECK(relative_difference(gradient, differences) <= kTolerance);

    // A gradient with one entry off by a hundredth must not pass; top1 gives the router none.
    if (is_router && !router_learns) {
      CHECK(std::all_of(gradient.begin(), gradient.end(), [](double value) { return value == 0; }));
      continue;
    }
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      if (gradient[i] != 0) places.push_back(i);
    }
    REQUIRE_FALSE(places.empty());
    const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
    std::nth_element(places.begin(), middle, places.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(gradient[a]) < std::abs(gradient[b]);
    });
    gradient[*middle] *= 1.01;
    CHECK(relative_difference(gradient, differences) > kTolerance);
  }
}

TEST_CASE("every router, expert, gating and loss: gradients equal central differences") {
  for (const std::string& loss : task_loss_names()) {
    for (const Kind& router : router_kinds()) {
      for (const Kind& expert : expert_kinds()) {
        for (const NamedGating& gating : example_gatings()) {
          CAPTURE(loss);
          CAPTURE(router.name);
          CAPTURE(expert.name);
          CAPTURE(gating.name);
          check_gradients(example_model(example_of(router), example_of(expert), gating.spec, kExperts), loss);
        }
      }
    }
  }
}

TEST_CASE("dense models: gradients equal central differences") {
  for (const char* match : {"expert", "moe"}) {
    for (const Kind& expert : expert_kinds()) {
      Json spec = example_model(example_of(router_kinds().front()), example_of(expert), "soft", kExperts);
      spec["kind"] = "dense";
      spec["match"] = match;
      CAPTURE(match);
      CAPTURE(expert.name);
      check_gradients(spec, "mse");
    }
  }
}

TEST_CASE("a batch that follows a larger one leaves no trace in the gradient") {
  for (const NamedGating& gating : example_gatings()) {
    CAPTURE(gating.name);
    const Json spec = model_of_kinds("linear", "mlp", gating.spec, kExperts);
    const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
    const ExampleBatch<double> large(1, 40, kInputs, kOutputs), small(2, 3, kInputs, kOutputs);
    Model<double> fresh(spec, kInputs, kOutputs, 0.0), used(spec, kInputs, kOutputs, 0.0);
    for (Model<double>* model : {&fresh, &used}) model->initialize({1, 0});
    used.loss_and_gradient(large.x.data(), large.y.data(), large.rows, *loss);
    used.loss_and_gradient(small.x.data(), small.y.data(), small.rows, *loss);
    fresh.loss_and_gradient(small.x.data(), small.y.data(), small.rows, *loss);
    CHECK(used.gradient() == fresh.gradient());
  }
}

TEST_CASE("the router's gradient is left out where it is frozen") {
  for (const Kind& kind : router_kinds()) {
    CAPTURE(kind.name);
    Json router = example_of(kind);
    router["trainable"] = false;
    Model<double> model(example_model(router, example_of(expert_kinds().front()), "soft", kExperts), kInputs,
                        kOutputs, 0.0);
    model.initialize({3, 0});
    const ExampleBatch<double> batch(17, kRows, kInputs, kOutputs);
    model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, *make_task_loss<double>("mse"));
    const std::vector<double> gradient = gradient_of(model, model.router_group());
    CHECK_FALSE(model.router_group().trainable);
    CHECK(std::all_of(gradient.begin(), gradient.end(), [](double value) { return value == 0; }));
  }
}

}  // namespace
}  // namespace moelab
