/// Trainings one after another.

#include <doctest/doctest.h>

#include "sim/data/gaussian_mixture.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "sim/train/experiment.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::phases_test {
namespace {

const Seeds kSeeds{3, 1};

ExperimentOptions example() {
  ExperimentOptions options;
  options.data =
      GaussianMixtureOptions{.clusters = 3, .dim = 4, .target = gaussian_mixture::ConstantTarget{2}};
  options.data.train_samples = 40;
  options.data.test_samples = 10;
  options.model =
      example_model(LinearRouterOptions{}, MlpExpertOptions{.depth = 2, .width = 4}, SoftGatingOptions{}, 3);
  options.train = small_steps(12);
  options.train.optimizer = SgdOptions{.momentum = 0.9};
  options.train.precision = TrainOptions::Precision::in_double;
  return options;
}

PhaseOptions phase_of(const ExperimentOptions& options, std::string name) {
  return {.name = std::move(name), .data = options.data, .loss = options.loss, .train = options.train};
}

AlignedVector<double> trained(const ExperimentOptions& options) {
  Experiment<double> experiment(options, kSeeds);
  do {
    CHECK(experiment.train().state == TrainState::done);
  } while (experiment.next_phase());
  return experiment.model().parameters;
}

}  // namespace

TEST_CASE("one phase is the training without phases, to the bit") {
  ExperimentOptions options = example();
  const AlignedVector<double> whole = trained(options);
  options.phases = {phase_of(options, "only")};
  CHECK(trained(options) == whole);
}

TEST_CASE("two phases on a fixed rule with kept moments are one of their steps, and without them another") {
  ExperimentOptions options = example();
  options.data.train_samples.reset();
  options.train.batch_size.reset();
  options.train.gradient = TrainOptions::Gradient::population;
  options.train.points = 64;
  options.train.redraw = false;
  const AlignedVector<double> whole = trained(options);
  options.phases = {phase_of(options, "first"), phase_of(options, "second")};
  options.phases[0].train.steps = 5;
  options.phases[1].train.steps = 7;
  CHECK(trained(options) != whole);
  options.phases[1].keep_optimizer = true;
  CHECK(trained(options) == whole);
}

TEST_CASE("a phase moves what learns in it alone") {
  ExperimentOptions options = example();
  options.model.kind = MoeOptions{.input_width = 5};
  const auto moved = [&](const Learns& learns) {
    ExperimentOptions own = options;
    own.phases = {phase_of(own, "only")};
    own.phases[0].learns = learns;
    Experiment<double> experiment(own, kSeeds);
    const AlignedVector<double> before = experiment.model().parameters;
    experiment.train();
    std::vector<bool> groups;
    for (const ParameterGroup& group : experiment.model().network->groups()) {
      const auto begin = static_cast<std::ptrdiff_t>(group.begin),
                 end = static_cast<std::ptrdiff_t>(group.end);
      groups.push_back(!std::equal(before.begin() + begin, before.begin() + end,
                                   experiment.model().parameters.begin() + begin));
    }
    return groups;  // projection, router, experts
  };
  CHECK(moved({true, true, true}) == std::vector<bool>{true, true, true});
  CHECK(moved({true, false, false}) == std::vector<bool>{false, true, false});
  CHECK(moved({false, true, false}) == std::vector<bool>{false, false, true});
  CHECK(moved({false, false, true}) == std::vector<bool>{true, false, false});
  options.model.router = LinearRouterOptions{.trainable = false};
  CHECK(moved({true, true, true}) == std::vector<bool>{true, false, true});
}

TEST_CASE("steps and records count through, and only the first phase records its start") {
  ExperimentOptions options = example();
  options.phases = {phase_of(options, "first"), phase_of(options, "second")};
  options.phases[0].train.record_every = 6;
  options.phases[1].train.record_every = 4;
  Experiment<double> experiment(options, kSeeds);
  std::vector<std::int64_t> records;
  const TrainCallbacks callbacks{.record = [&](std::int64_t step) { records.push_back(step); }};
  CHECK(experiment.train(callbacks).step == 12);
  CHECK(experiment.next_phase());
  CHECK(experiment.train(callbacks).step == 24);
  CHECK(!experiment.next_phase());
  CHECK(records == std::vector<std::int64_t>{0, 6, 12, 16, 20, 24});
}

TEST_CASE("a training that is asked to stop after a record stops there, done") {
  ExperimentOptions options = example();
  options.train.record_every = 3;
  Experiment<double> experiment(options, kSeeds);
  TrainCallbacks callbacks;
  callbacks.stop = [](std::int64_t step) { return step >= 5; };
  const TrainOutcome outcome = experiment.train(callbacks);
  CHECK(outcome.state == TrainState::done);
  CHECK(outcome.step == 6);
  CHECK(outcome.stopped);
  options.train.steps = 6;
  CHECK(trained(options) == experiment.model().parameters);
}

TEST_CASE("what phases cannot be") {
  ExperimentOptions options = example();
  options.phases = {phase_of(options, "first"), phase_of(options, "second")};
  options.phases[0].keep_optimizer = true;
  check_refused(options, "phases[0].keep_optimizer", "got true, but no phase is before this one");
  options.phases[0].keep_optimizer = false;
  options.phases[1].keep_optimizer = true;
  options.phases[1].train.optimizer = AdamOptions{};
  check_refused(options, "phases[1].keep_optimizer",
                "got true, but the phase before has another train.optimizer, or other options of it");
  // The kept velocities go on with the options that they began with.
  options.phases[0].train.optimizer = AdamOptions{};
  check(options);
  options.phases[1].train.optimizer = AdamOptions{.beta1 = 0.5};
  check_refused(options, "phases[1].keep_optimizer",
                "got true, but the phase before has another train.optimizer, or other options of it");
  options.phases[1].train.optimizer = AdamOptions{};
  options.phases[1].learns = {.router = true, .experts = false, .layers = true, .first_layers = true};
  check_refused(
      options, "phases[1].keep_optimizer",
      "got true, but parts of experts stop learning; needs false, or the same parts in \"learns\" of "
      "the phase before");
  options.phases[0].learns = options.phases[1].learns;
  check(options);
  options.phases[0].learns = options.phases[1].learns = {};
  options.phases[0].train.optimizer = SgdOptions{};
  options.phases[1].keep_optimizer = false;
  check(options);
  options.phases[1].train.precision = TrainOptions::Precision::in_float;
  check_refused(options, "phases[1].train.precision",
                "needs the precision of train: a model has one number type");
  options.phases[1].train.precision = TrainOptions::Precision::in_double;
  options.phases[1].train.lr.reset();
  check_refused(options, "phases[1].train.lr", "missing; train.optimizer \"adam\" needs it");
  options = example();
  options.phases = {phase_of(options, "first")};
  options.model.gating.train = TopKGatingOptions{.k = 1};
  options.model.gating.balance_rate = 0.1;
  check(options);
  options.phases[0].learns.router = false;
  check_refused(options, "phases[0].learns",
                "leaves out \"router\", but the biases of model.gating.balance_rate go on moving; needs "
                "\"router\", or model.gating.balance_rate 0");
}

TEST_CASE("data of another shape end the training") {
  ExperimentOptions options = example();
  options.phases = {phase_of(options, "first"), phase_of(options, "second")};
  options.phases[1].data =
      GaussianMixtureOptions{.clusters = 3, .dim = 5, .target = gaussian_mixture::ConstantTarget{2}};
  options.phases[1].data.train_samples = 40;
  Experiment<double> experiment(options, kSeeds);
  experiment.train();
  CHECK_THROWS_AS(experiment.next_phase(), InvalidOption);
}

}  // namespace moelab::phases_test
