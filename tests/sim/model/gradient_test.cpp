#include <doctest/doctest.h>

#include <algorithm>

#include "tests/sim/model/gradient_check.h"

namespace moelab {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 7;

const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

TEST_CASE("every router, expert, gating and loss: gradients equal central differences") {
  for (const std::string& loss : task_loss_names()) {
    for (const Kind& router : router_kinds()) {
      for (const Kind& expert : expert_kinds()) {
        // A loss reaches experts and routers through the outputs alone: one kind of expert for all but the
        // first.
        if (loss != task_loss_names().front() && expert.name != "mlp") continue;
        for (const NamedGating& gating : example_gatings()) {
          CAPTURE(loss);
          CAPTURE(router.name);
          CAPTURE(expert.name);
          CAPTURE(gating.name);
          const Json spec = example_model(example_of(router), example_of(expert), gating.spec, kExperts);
          check_gradients(spec, with_image(spec, kLayout), kRows, loss);
        }
      }
    }
  }
}

TEST_CASE("a linear router with biases, experts of another power: gradients equal central differences") {
  for (const int power : {1, 3, 4}) {
    CAPTURE(power);
    const Json spec = example_model({{"kind", "linear"}, {"bias", true}},
                                    {{"kind", "polynomial"}, {"power", power}}, "soft", kExperts);
    CHECK(Model<double>(spec, kLayout, 0.0).layer(0).router_parameter_count() == (kInputs + 1) * kExperts);
    check_gradients(spec, kLayout, kRows, "mse");
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
      check_gradients(spec, kLayout, kRows, "mse");
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
    if (kind.name == "attention_aware") continue;  // the attention below it learns
    Json router = example_of(kind);
    router["trainable"] = false;
    const Json spec = example_model(router, example_of(expert_kinds().front()), "soft", kExperts);
    Model<double> model(spec, with_image(spec, kLayout), 0.0);
    model.initialize({3, 0});
    const ExampleBatch<double> batch(17, kRows, model.layout().input_dim, kOutputs);
    model.loss_and_gradient(batch.x.data(), batch.y.data(), batch.rows, *make_task_loss<double>("mse"));
    const std::vector<double> gradient = gradient_of(model, model.groups().front());
    CHECK_FALSE(model.groups().front().trainable);
    CHECK(std::all_of(gradient.begin(), gradient.end(), [](double value) { return value == 0; }));
  }
}

}  // namespace
}  // namespace moelab
