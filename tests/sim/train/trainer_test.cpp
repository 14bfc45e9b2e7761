#include "sim/train/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tests/sim/model/example.h"

namespace moelab {
namespace {

constexpr int kInputs = 4, kOutputs = 2, kExperts = 3;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

Json train_spec(const Json& fields) {
  Json given = {{"lr", 0.05}, {"batch_size", 8}};
  given.update(fields);
  return resolve(train_shape(), given, "train");
}

template <class Real>
TrainingSet<Real> example_set(int rows, int inputs = kInputs) {
  const ExampleBatch<Real> batch(5, rows, inputs, kOutputs);
  return {rows, batch.x, batch.y};
}

/// Notes the steps at which it is called.
struct Recorder {
  std::vector<std::int64_t> steps;
  TrainCallbacks callbacks(std::function<bool(double)> progress = [](double) { return false; }) {
    return {[this](std::int64_t step) { steps.push_back(step); }, std::move(progress)};
  }
};

/// A loss that only watches: which targets it was shown, batch by batch.
class WatchingLoss final : public TaskLoss<double> {
 public:
  double value_and_gradient(const double*, const double* targets, int rows, int output_dim,
                            double* output_gradient) const override {
    batches.emplace_back();
    for (int i = 0; i < rows; ++i) batches.back().push_back(targets[i * output_dim]);
    std::fill_n(output_gradient, static_cast<std::size_t>(rows) * 16, 0.0);
    return 0;
  }
  mutable std::vector<std::vector<double>> batches;
};

TEST_CASE("total_steps counts steps, or batches of all epochs") {
  CHECK(total_steps(train_spec({{"steps", 123}}), 1000) == 123);
  CHECK(total_steps(train_spec({{"epochs", 3}, {"batch_size", 8}}), 16) == 6);
  CHECK(total_steps(train_spec({{"epochs", 3}, {"batch_size", 8}}), 17) == 9);
  CHECK(total_steps(train_spec({{"epochs", 3}, {"batch_size", 800}}), 17) == 3);
  CHECK(record_interval(train_spec({{"steps", 5}}), 5) == 1);
  CHECK(record_interval(train_spec({{"steps", 1000}}), 1000) == 100);
  CHECK(record_interval(train_spec({{"steps", 1000}, {"record_every", 7}}), 1000) == 7);
}

TEST_CASE("schedules") {
  const auto factor = [](const Json& schedule, std::int64_t step, std::int64_t total) {
    return schedule_factor(resolve(Shape::variant(schedule_kinds()), schedule, "schedule"), step, total);
  };
  const Json step = {{"kind", "step"}, {"every", 10}, {"factor", 0.5}};
  const Json cosine = {{"kind", "cosine"}, {"final", 0.2}};
  for (const std::int64_t at : {0, 50, 99}) CHECK(factor("constant", at, 100) == 1.0);
  CHECK(factor(step, 0, 100) == 1.0);
  CHECK(factor(step, 9, 100) == 1.0);
  CHECK(factor(step, 10, 100) == 0.5);
  CHECK(factor(step, 39, 100) == 0.125);
  CHECK(factor(cosine, 0, 100) == doctest::Approx(1.0).epsilon(1e-15));
  CHECK(factor(cosine, 50, 100) == doctest::Approx(0.6).epsilon(1e-15));
  CHECK(factor(cosine, 25, 100) == doctest::Approx(0.2 + 0.4 * (1 + std::sqrt(0.5))).epsilon(1e-15));
  CHECK(factor(cosine, 100, 100) == doctest::Approx(0.2).epsilon(1e-15));
}

TEST_CASE("records come before the first step, at every interval and after the last step") {
  const std::map<std::pair<int, int>, std::vector<std::int64_t>> expected = {
      {{10, 4}, {0, 4, 8, 10}}, {{8, 4}, {0, 4, 8}}, {{3, 5}, {0, 3}}, {{1, 1}, {0, 1}}};
  for (const auto& [run, steps] : expected) {
    Model<double> model(model_of_kinds("linear", "constant", "soft", kExperts), kInputs, kOutputs, 0.0);
    model.initialize({1, 0});
    Recorder recorder;
    const TrainOutcome outcome =
        train(model, *make_task_loss<double>("mse"), example_set<double>(20),
              train_spec({{"steps", run.first}, {"record_every", run.second}}), {1, 0}, recorder.callbacks());
    CHECK(outcome.state == TrainState::done);
    CHECK(outcome.step == run.first);
    CHECK(recorder.steps == steps);
  }
}

TEST_CASE("each epoch visits every row once, in a new order") {
  constexpr int kSamples = 19, kBatch = 8;
  TrainingSet<double> data = example_set<double>(kSamples);
  for (int i = 0; i < kSamples; ++i) data.y[static_cast<std::size_t>(i * kOutputs)] = i;
  Model<double> model(model_of_kinds("linear", "constant", "soft", kExperts), kInputs, kOutputs, 0.0);
  const WatchingLoss loss;
  Recorder recorder;
  train(model, loss, data, train_spec({{"epochs", 2}, {"batch_size", kBatch}}), {1, 0}, recorder.callbacks());
  REQUIRE(loss.batches.size() == 6);
  std::vector<std::vector<double>> epochs(2);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(loss.batches[i].size() == (i % 3 == 2 ? 3 : 8));
    epochs[i / 3].insert(epochs[i / 3].end(), loss.batches[i].begin(), loss.batches[i].end());
  }
  CHECK(epochs[0] != epochs[1]);
  for (std::vector<double>& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (int i = 0; i < kSamples; ++i) CHECK(epoch[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("divergence ends the run as a recorded state") {
  for (const Json& lr : {Json(1e30), Json{{"expert", 1e30}, {"router", 0.0}}}) {
    Model<float> model(model_of_kinds("linear", "mlp", "soft", kExperts), kInputs, kOutputs, 0.0);
    model.initialize({1, 0});
    Recorder recorder;
    const TrainOutcome outcome =
        train(model, *make_task_loss<float>("mse"), example_set<float>(20),
              train_spec({{"steps", 200}, {"lr", lr}}), {1, 0}, recorder.callbacks());
    CHECK(outcome.state == TrainState::diverged);
    CHECK(outcome.step < 200);
    CHECK(recorder.steps == std::vector<std::int64_t>{0});
  }
}

TEST_CASE("progress may abandon the run") {
  Model<double> model(model_of_kinds("linear", "constant", "soft", kExperts), kInputs, kOutputs, 0.0);
  model.initialize({1, 0});
  Recorder recorder;
  double share = -1;
  const TrainOutcome outcome =
      train(model, *make_task_loss<double>("mse"), example_set<double>(20),
            train_spec({{"steps", 1e12}, {"lr", 1e-6}}), {1, 0}, recorder.callbacks([&](double done) {
              share = done;
              return true;
            }));
  CHECK(outcome.state == TrainState::interrupted);
  CHECK(outcome.step > 0);
  CHECK(outcome.step < 1000000000000);
  CHECK(share > 0);
  CHECK(share < 1);
}

/// Parameters after a run of some hundred steps, widened to double.
template <class Real>
std::vector<double> trained(const Json& spec, const Json& fields) {
  Model<Real> model(spec, with_image(spec, kLayout), 0.0);
  model.initialize({1, 0});
  Recorder recorder;
  train(model, *make_task_loss<Real>("mse"), example_set<Real>(50, model.layout().input_dim),
        train_spec(fields), {1, 0}, recorder.callbacks());
  return {model.parameters().begin(), model.parameters().end()};
}

TEST_CASE("float and double runs agree loosely, and a run repeats to the last bit") {
  const Json spec = model_of_kinds("linear", "mlp", "soft", kExperts), fields = {{"steps", 100}};
  const std::vector<double> narrow = trained<float>(spec, fields), wide = trained<double>(spec, fields);
  REQUIRE(narrow.size() == wide.size());
  // A hundred gentle steps multiply float's 6e-8 by far less than 1e4, and a run with other data differs by
  // order 0.1.
  constexpr double kLoose = 1e-3;
  double worst = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) worst = std::max(worst, std::abs(narrow[i] - wide[i]));
  CHECK(worst < kLoose);
  CHECK(worst > 0);
  CHECK(trained<float>(spec, fields) == narrow);
  const std::vector<double> longer = trained<double>(spec, {{"steps", 110}});
  for (std::size_t i = 0; i < wide.size(); ++i) worst = std::max(worst, std::abs(longer[i] - wide[i]));
  CHECK(worst > kLoose);
}

TEST_CASE("updates of experts that no row reached may be put off: the bits are those of every step") {
  const Json gating = {{"kind", "topk"}, {"k", 1}};
  const Json spec = example_model(example_of(kind_named(router_kinds(), "linear")),
                                  example_of(kind_named(expert_kinds(), "mlp")), gating, 16);
  const TrainingSet<float> data = example_set<float>(40);
  const std::unique_ptr<TaskLoss<float>> loss = make_task_loss<float>("mse");
  // A record brings every expert up to date, so recording at each step puts nothing off.
  const auto parameters = [&](int record_every) {
    Model<float> model(spec, kInputs, kOutputs, 0.0);
    model.initialize({1, 0});
    const Json train_fields = {{"optimizer", {{"kind", "sgd"}, {"momentum", 0.9}}},
                               {"weight_decay", 0.01},
                               {"schedule", "cosine"},
                               {"batch_size", 2},
                               {"steps", 200},
                               {"record_every", record_every}};
    int idle = 0;
    const TrainCallbacks callbacks = {[&](std::int64_t step) {
                                        for (int e = 0; step > 0 && e < 16; ++e) {
                                          idle += model.layer(0).routing().pairs_of(e) == 0;
                                        }
                                      },
                                      [](double) { return false; }};
    train(model, *loss, data, train_spec(train_fields), {2, 0}, callbacks);
    CHECK(idle > 0);
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  CHECK(parameters(1) == parameters(200));
}

TEST_CASE("groups have their own rates, and a frozen router stays, weight decay or not") {
  for (const Kind& kind : router_kinds()) {
    for (const char* optimizer : {"sgd", "adam", "adamw"}) {
      CAPTURE(kind.name);
      CAPTURE(optimizer);
      Json router = example_of(kind);
      const auto moved = [&](bool trainable, const Json& lr) {
        router["trainable"] = trainable;
        const Json spec =
            example_model(router, example_of(kind_named(expert_kinds(), "linear")), "soft", kExperts);
        Model<double> start(spec, with_image(spec, kLayout), 0.0);
        start.initialize({1, 0});
        const std::vector<double> end = trained<double>(
            spec, {{"steps", 5}, {"lr", lr}, {"weight_decay", 0.1}, {"optimizer", optimizer}});
        const auto differs = [&](const ParameterGroup& group) {
          return !std::equal(end.begin() + static_cast<std::ptrdiff_t>(group.begin),
                             end.begin() + static_cast<std::ptrdiff_t>(group.end),
                             start.parameters().begin() + static_cast<std::ptrdiff_t>(group.begin));
        };
        return std::pair(differs(start.groups()[0]), differs(start.groups()[1]));
      };
      CHECK(moved(true, 0.05) == std::pair(true, true));
      CHECK(moved(false, 0.05) == std::pair(false, true));
      CHECK(moved(true, {{"router", 0.0}, {"expert", 0.05}}) == std::pair(false, true));
      CHECK(moved(true, {{"router", 0.05}, {"expert", 0.0}}) == std::pair(true, false));
    }
  }
}

}  // namespace
}  // namespace moelab
