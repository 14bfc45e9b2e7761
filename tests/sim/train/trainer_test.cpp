#include "sim/train/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tests/sim/model/learning_routers.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::trainer_test {
namespace {

constexpr int kInputs = 4, kOutputs = 2, kExperts = 3;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};

template <class Real>
TrainingSet<Real> example_set(int rows) {
  return normal_set<Real>(kLayout, rows);
}

/// The mean squared error of a model, with what training writes.
template <class Real>
struct Run {
  explicit Run(const ModelOptions& options, const Layout& layout = kLayout)
      : model(options, layout, {{1, 0}}), workspace(model.network->make_workspace()) {}

  TrainOutcome train_on(const TrainingSet<Real>& data, const TrainOptions& options,
                        const TrainCallbacks& callbacks = {}, const Seeds& seeds = {1, 0}) {
    return train(model, {*loss}, data, options, seeds, callbacks, workspace);
  }

  std::unique_ptr<TaskLoss<Real>> loss = make_task_loss<Real>("mse");
  Model<Real> model;
  Workspace<Real> workspace;
};

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

TEST_CASE("records come before the first step, at every interval and after the last step") {
  const std::map<std::pair<int, int>, std::vector<std::int64_t>> expected = {
      {{10, 4}, {0, 4, 8, 10}}, {{8, 4}, {0, 4, 8}}, {{3, 5}, {0, 3}}, {{1, 1}, {0, 1}}};
  for (const auto& [run, steps] : expected) {
    Run<double> trained(model_of_kinds("linear", "constant", SoftGatingOptions{}, kExperts));
    Recorder recorder;
    TrainOptions options = small_steps(run.first);
    options.record_every = run.second;
    const TrainOutcome outcome = trained.train_on(example_set<double>(20), options, recorder.callbacks());
    CHECK(outcome.state == TrainState::done);
    CHECK(outcome.step == run.first);
    CHECK(recorder.steps == steps);
  }
}

TEST_CASE("each epoch visits every row once, in a new order") {
  constexpr int kSamples = 19, kBatch = 8;
  TrainingSet<double> data = example_set<double>(kSamples);
  for (int i = 0; i < kSamples; ++i) data.y[static_cast<std::size_t>(i * kOutputs)] = i;
  Run<double> run(model_of_kinds("linear", "constant", SoftGatingOptions{}, kExperts));
  const WatchingLoss loss;
  TrainOptions options;
  options.lr = 0.05;
  options.batch_size = kBatch;
  options.epochs = 2;
  train(run.model, {loss}, data, options, {1, 0}, {}, run.workspace);
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
  for (const PerGroup& lr : {PerGroup(1e30), PerGroup(1e30, 0)}) {
    Run<float> run(model_of_kinds("linear", "mlp", SoftGatingOptions{}, kExperts));
    Recorder recorder;
    TrainOptions options = small_steps(200);
    options.lr = lr;
    const TrainOutcome outcome = run.train_on(example_set<float>(20), options, recorder.callbacks());
    CHECK(outcome.state == TrainState::diverged);
    CHECK(outcome.step < 200);
    CHECK(recorder.steps == std::vector<std::int64_t>{0});
  }
}

TEST_CASE("progress may abandon the run") {
  Run<double> run(model_of_kinds("linear", "constant", SoftGatingOptions{}, kExperts));
  Recorder recorder;
  TrainOptions options = small_steps(1000000000000);
  options.lr = 1e-6;
  double share = -1;
  const TrainOutcome outcome =
      run.train_on(example_set<double>(20), options, recorder.callbacks([&](double done) {
        share = done;
        return true;
      }));
  CHECK(outcome.state == TrainState::interrupted);
  CHECK(outcome.step > 0);
  CHECK(outcome.step < 1000000000000);
  CHECK(share > 0);
  CHECK(share < 1);
}

/// Parameters after a run, widened to double.
template <class Real>
std::vector<double> trained(const ModelOptions& model, const TrainOptions& options) {
  Run<Real> run(model, with_image(model, kLayout));
  run.train_on(normal_set<Real>(run.model.network->layout(), 50), options);
  return {run.model.parameters.begin(), run.model.parameters.end()};
}

TEST_CASE("float and double runs agree loosely, and a run repeats to the last bit") {
  const ModelOptions model = model_of_kinds("linear", "mlp", SoftGatingOptions{}, kExperts);
  const TrainOptions options = small_steps(100);
  const std::vector<double> narrow = trained<float>(model, options), wide = trained<double>(model, options);
  REQUIRE(narrow.size() == wide.size());
  // A hundred gentle steps multiply float's 6e-8 by far less than 1e4, and a run with other data differs by
  // order 0.1.
  constexpr double kLoose = 1e-3;
  double worst = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) worst = std::max(worst, std::abs(narrow[i] - wide[i]));
  CHECK(worst < kLoose);
  CHECK(worst > 0);
  CHECK(trained<float>(model, options) == narrow);
  const std::vector<double> longer = trained<double>(model, small_steps(110));
  for (std::size_t i = 0; i < wide.size(); ++i) worst = std::max(worst, std::abs(longer[i] - wide[i]));
  CHECK(worst > kLoose);
}

/// Experts without rows are among them at every step that is recorded.
std::vector<float> trained_with_idle_experts(const ModelOptions& model, int record_every,
                                             std::optional<double> clip_norm) {
  Run<float> run(model);
  TrainOptions options = small_steps(200);
  options.optimizer = SgdOptions{.momentum = 0.9};
  options.weight_decay = 0.01;
  options.lr = 0.01;
  options.schedule = CosineScheduleOptions{};
  options.batch_size = 2;
  options.record_every = record_every;
  options.clip_norm = clip_norm;
  int idle = 0;
  const TrainCallbacks callbacks = {[&](std::int64_t step) {
                                      const Routing<float>& routing =
                                          run.model.network->mixture_scratch(0, run.workspace).routing();
                                      for (int e = 0; step > 0 && e < routing.experts; ++e)
                                        idle += routing.pairs_of(e) == 0;
                                    },
                                    [](double) { return false; }};
  run.train_on(example_set<float>(40), options, callbacks, {2, 0});
  CHECK(idle > 0);
  return {run.model.parameters.begin(), run.model.parameters.end()};
}

TEST_CASE("experts updated on the way back, and those without rows later: the bits of all at every step") {
  ModelOptions model = model_of_kinds("linear", "mlp", TopKGatingOptions{.k = 1}, 16);
  for (const int layers : {1, 2}) {
    CAPTURE(layers);
    model.layers = layers;
    // A record brings every expert up to date, so recording at each step puts nothing off; a norm to clip at
    // needs the whole gradient.
    const std::vector<float> expected = trained_with_idle_experts(model, 1, 1e30);
    CHECK(trained_with_idle_experts(model, 1, std::nullopt) == expected);
    CHECK(trained_with_idle_experts(model, 200, std::nullopt) == expected);
    CHECK(trained_with_idle_experts(model, 200, 1e30) == expected);
  }
}

TEST_CASE("groups have their own rates, and a frozen router stays, weight decay or not") {
  for (const RouterKind& kind : RouterAxis::table()) {
    for (const TrainingRuleKind& rule : TrainingRuleAxis::table()) {
      if (!rule.make || !learns(kind)) continue;
      CAPTURE(kind.name);
      CAPTURE(rule.name);
      const auto moved = [&](bool trainable, const PerGroup& lr) {
        const ModelOptions options =
            example_model(with_field(RouterOptions::example(kind.name), "trainable", trainable),
                          ExpertOptions::example("linear"), SoftGatingOptions{}, kExperts);
        const Run<double> start(options, with_image(options, kLayout));
        TrainOptions train = small_steps(5);
        train.lr = lr;
        train.weight_decay = 0.1;
        train.optimizer = TrainingRule::named(rule.name);
        const std::vector<double> end = trained<double>(options, train);
        const auto differs = [&](ParameterGroup::Role role) {
          for (const ParameterGroup& group : start.model.network->groups()) {
            if (group.role != role || group.layer != 0) continue;
            if (!std::equal(end.begin() + static_cast<std::ptrdiff_t>(group.begin),
                            end.begin() + static_cast<std::ptrdiff_t>(group.end),
                            start.model.parameters.begin() + static_cast<std::ptrdiff_t>(group.begin))) {
              return true;
            }
          }
          return false;
        };
        return std::pair(differs(ParameterGroup::Role::router), differs(ParameterGroup::Role::expert));
      };
      CHECK(moved(true, 0.05) == std::pair(true, true));
      CHECK(moved(false, 0.05) == std::pair(false, true));
      CHECK(moved(true, {0.05, 0.0}) == std::pair(false, true));
      CHECK(moved(true, {0.0, 0.05}) == std::pair(true, false));
    }
  }
}

TEST_CASE("the state's progress is the share of steps done when the last one began, and stays") {
  Run<double> run(model_of_kinds("linear", "constant", SoftGatingOptions{}, kExperts));
  std::vector<double> seen;
  TrainOptions options = small_steps(8);
  options.record_every = 1;
  run.train_on(example_set<double>(20), options,
               {[&](std::int64_t) { seen.push_back(run.model.state.progress); }});
  CHECK(seen == std::vector<double>{0, 0, 1 / 8.0, 2 / 8.0, 3 / 8.0, 4 / 8.0, 5 / 8.0, 6 / 8.0, 7 / 8.0});
  CHECK(run.model.state.progress == 7 / 8.0);
}

TEST_CASE("a gradient with a larger norm is scaled down to clip_norm, router and experts together") {
  const TrainingSet<double> data = example_set<double>(8);
  const ModelOptions model = model_of_kinds("linear", "linear", SoftGatingOptions{}, kExperts);
  const auto moved = [&](std::optional<double> clip_norm) {
    Run<double> run(model);
    const AlignedVector<double> before = run.model.parameters;
    TrainOptions options = small_steps(1);
    options.clip_norm = clip_norm;
    run.train_on(data, options);
    std::vector<double> difference;
    for (std::size_t i = 0; i < before.size(); ++i) difference.push_back(run.model.parameters[i] - before[i]);
    return difference;
  };
  const auto norm_of = [](const std::vector<double>& values) {
    double squared = 0;
    for (const double value : values) squared += value * value;
    return std::sqrt(squared);
  };
  const std::vector<double> whole = moved(std::nullopt);
  const double norm = norm_of(whole) / 0.05;  // the rate
  CHECK(moved(1.01 * norm) == whole);
  const std::vector<double> clipped = moved(norm / 2);
  for (std::size_t i = 0; i < whole.size(); ++i)
    CHECK(clipped[i] == doctest::Approx(whole[i] / 2).epsilon(1e-9));
}

TEST_CASE("a step without a rate or without batches is refused") {
  Run<double> run(model_of_kinds("linear", "constant", SoftGatingOptions{}, kExperts));
  TrainOptions options = small_steps(1);
  options.lr.reset();
  CHECK_THROWS_AS(run.train_on(example_set<double>(20), options), std::invalid_argument);
  options = small_steps(1);
  options.batch_size.reset();
  CHECK_THROWS_AS(run.train_on(example_set<double>(20), options), std::invalid_argument);
}

}  // namespace
}  // namespace moelab::trainer_test
