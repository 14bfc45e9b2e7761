#include "sim/train/experiment.h"

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/model/router/routers.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::experiment_test {
namespace {

constexpr Seeds kSeeds{7, 2};
constexpr int kExperts = 4;

ExperimentOptions small_experiment() {
  ExperimentOptions options;
  options.data = data_of({{"generator", "gaussian_mixture"},
                          {"clusters", 3},
                          {"dim", 4},
                          {"target", {{"kind", "constant"}, {"dim", 2}}},
                          {"train_samples", 40},
                          {"test_samples", 10}});
  options.model = model_of_kinds("linear", "mlp", SoftGatingOptions{}, kExperts);
  options.train = small_steps(30);
  return options;
}

ExperimentOptions small_fit() {
  ExperimentOptions options;
  options.data = data_of({{"generator", "moe_regression"},
                          {"dim", 2},
                          {"router", {{"kind", "linear"}}},
                          {"expert", {{"kind", "linear"}}},
                          {"measure", {{"kind", "drawn"}, {"components", 2}}},
                          {"train_samples", 200}});
  options.model = example_model(LinearRouterOptions{.bias = true}, ExpertOptions::named("linear"),
                                SoftGatingOptions{}, 2);
  options.train.optimizer = LeastSquaresOptions{};
  options.train.start = WarmStartOptions{};
  options.train.steps = 500;
  options.train.precision = TrainOptions::Precision::in_double;
  return options;
}

TEST_CASE("an experiment is its parts: problem, model, training set, trainer") {
  const ExperimentOptions options = small_experiment();
  Experiment<float> experiment(options, kSeeds);
  std::vector<std::int64_t> recorded;
  CHECK(experiment.train({[&](std::int64_t step) { recorded.push_back(step); }}).state == TrainState::done);
  CHECK(recorded.front() == 0);
  CHECK(recorded.back() == 30);

  const std::unique_ptr<Problem> problem = draw_problem(options.data, kSeeds);
  const ModelOptions resolved = resolved_for(options.model, options.train);
  CHECK(experiment.options().model.gating.train.as<SoftGatingOptions>()->skip_below == 1e-8);
  Model<float> model(resolved, problem->layout(), {kSeeds});
  CHECK(model.parameters != experiment.model().parameters);
  Workspace<float> workspace = model.network->make_workspace();
  const std::unique_ptr<TaskLoss<float>> loss = make_task_loss<float>("mse");
  train(model, {*loss}, draw_training_set<float>(*problem, kSeeds, 40), options.train, kSeeds, {}, workspace);
  CHECK(model.parameters == experiment.model().parameters);
  CHECK(model.state == experiment.model().state);
}

TEST_CASE("the training set is the same drawn in pieces, and its first samples do not depend on its size") {
  const std::unique_ptr<Problem> problem = draw_problem(small_experiment().data, kSeeds);
  constexpr int kSamples = 5000;
  const Dataset whole = draw_set(*problem, kSeeds, Purpose::train_data, kSamples);
  const TrainingSet<double> pieces = draw_training_set<double>(*problem, kSeeds, kSamples);
  CHECK(pieces.rows == kSamples);
  CHECK(std::equal(pieces.x.begin(), pieces.x.end(), whole.x.data(), whole.x.data() + whole.x.size()));
  CHECK(std::equal(pieces.y.begin(), pieces.y.end(), whole.y.data(), whole.y.data() + whole.y.size()));
  const TrainingSet<double> fewer = draw_training_set<double>(*problem, kSeeds, 10);
  CHECK(std::equal(fewer.x.begin(), fewer.x.end(), pieces.x.begin()));
}

TEST_CASE("a router that starts at training rows has those of the training set") {
  ExperimentOptions options = small_experiment();
  options.model.router = LinearRouterOptions{.init = "train_samples", .init_scale = 0.5};
  const Experiment<double> experiment(options, kSeeds);
  const Dataset data = draw_set(experiment.problem(), kSeeds, Purpose::train_data, kExperts);
  const NamedArray<double> weight = arrays(experiment.model()).front();
  REQUIRE(weight.name == "router_weight");
  for (Eigen::Index i = 0; i < data.x.size(); ++i) {
    CHECK(weight.values[static_cast<std::size_t>(i)] == 0.5 * data.x.data()[i]);
  }
}

TEST_CASE("population gradients need no training set") {
  ExperimentOptions options = small_experiment();
  options.data.train_samples.reset();
  options.train.batch_size.reset();
  options.train.gradient = TrainOptions::Gradient::population;
  options.train.points = 64;
  Experiment<double> experiment(options, kSeeds);
  const AlignedVector<double> start = experiment.model().parameters;
  const TrainOutcome outcome = experiment.train();
  CHECK(outcome.state == TrainState::done);
  CHECK(outcome.step == 30);
  CHECK(experiment.model().parameters != start);
}

TEST_CASE("a least-squares fit tells how it ended, in double alone") {
  Experiment<double> experiment(small_fit(), kSeeds);
  const TrainOutcome outcome = experiment.train();
  CHECK(outcome.state == TrainState::done);
  CHECK(outcome.step == experiment.fit().evaluations);
  CHECK(experiment.fit().converged);
  Experiment<float> in_float(small_fit(), kSeeds);
  CHECK_THROWS_AS(in_float.train(), std::invalid_argument);
}

/// The message about a change of valid options.
template <class Change>
void check_refused(ExperimentOptions options, const Change& change, const std::string& path,
                   const std::string& message) {
  check(options);
  change(options);
  check_refused(options, path, message);
}

TEST_CASE("what data, model, loss and training cannot be together") {
  const ExperimentOptions small = small_experiment(), fit = small_fit();
  check_refused(
      small, [](ExperimentOptions& changed) { changed.data.train_samples.reset(); }, "data.train_samples",
      "missing; train.gradient \"sample\" needs it");
  // Of several errors the training set's comes first.
  check_refused(
      small, [](ExperimentOptions& changed) { changed.train.gradient = TrainOptions::Gradient::population; },
      "data.train_samples", "given, but train.gradient is \"population\"");
  check_refused(
      small,
      [](ExperimentOptions& changed) {
        changed.model.router = LinearRouterOptions{.init = "train_samples"};
        changed.data.train_samples = 3;
      },
      "model.router.init",
      "got \"train_samples\", needs a training sample for each of model.experts = 4, but there are 3");
  check_refused(
      small, [](ExperimentOptions& changed) { changed.loss.task = "cross_entropy"; }, "loss.task",
      "got \"cross_entropy\", needs targets that are classes; data.generator \"gaussian_mixture\" has none");
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.loss.task = "cross_entropy"; }, "loss.task",
      "got \"cross_entropy\", but train.optimizer is \"lbfgs\", which fits by \"mse\"");
  check_refused(
      fit, [&](ExperimentOptions& changed) { changed.data = small.data; }, "train.start",
      "got \"warm\", needs data.generator \"moe_regression\"");
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.model.expert = ExpertOptions::named("relu"); },
      "train.start",
      "got \"warm\", needs a mixture of one layer with the router, gating.train and expert of the data");
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.model.router = LinearRouterOptions{}; },
      "model.router.bias", "missing; a warm start needs true");
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.model.experts = 1; }, "model.experts",
      "got 1, needs the 2 components of data.measure for a warm start");
}

TEST_CASE("what a fit does not read is refused") {
  const ExperimentOptions fit = small_fit();
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.loss.task = "correlation"; }, "loss.task",
      "got \"correlation\", but train.optimizer is \"lbfgs\", which fits by \"mse\"");
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.model.gating.jitter = 0.1; }, "model.gating.jitter",
      "given, but train.optimizer is \"lbfgs\", which takes no training steps");
  ExperimentOptions selecting = fit;
  selecting.train.start.reset();
  selecting.model.gating.train = TopKGatingOptions{.k = 1};
  check_refused(
      selecting, [](ExperimentOptions& changed) { changed.model.gating.balance_rate = 0.1; },
      "model.gating.balance_rate", "given, but train.optimizer is \"lbfgs\", which takes no training steps");
  check_refused(
      fit,
      [](ExperimentOptions& changed) {
        changed.model.router = LinearRouterOptions{.trainable = false, .bias = true};
      },
      "model.router.trainable",
      "got false, but train.start \"warm\" places the router, too; needs true, or train.start \"cold\"");
  ExperimentOptions cold = fit;
  cold.model.router = LinearRouterOptions{.trainable = false, .bias = true};
  cold.train.start = ColdStartOptions{};
  check(cold);
}

TEST_CASE("what a fit by likelihood does not read is refused") {
  ExperimentOptions fit = small_fit();
  fit.train.start = BestStartOptions{};
  fit.train.optimizer = LeastSquaresOptions{.likelihood = LikelihoodOptions{}};
  const std::string alone = "given, but train.optimizer.likelihood maximises the likelihood alone";
  const std::string without = "given, but train.optimizer.likelihood fits by EM and Newton steps, without it";
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.loss.task = "correlation"; }, "loss.task", alone);
  check_refused(
      fit, [](ExperimentOptions& changed) { changed.loss.coefficient("z") = 0.1; }, "loss.z", alone);
  check_refused(
      fit,
      [](ExperimentOptions& changed) {
        changed.train.optimizer = LeastSquaresOptions{.memory = 5, .likelihood = LikelihoodOptions{}};
      },
      "train.optimizer.memory", without);
  check_refused(
      fit,
      [](ExperimentOptions& changed) {
        changed.train.optimizer = LeastSquaresOptions{.bound = 3, .likelihood = LikelihoodOptions{}};
      },
      "train.optimizer.bound", without);
  check_refused(
      fit,
      [](ExperimentOptions& changed) { changed.model.gating.train = SoftGatingOptions{.skip_below = 0.1}; },
      "model.gating.train.skip_below", without);
  check_refused(
      fit,
      [](ExperimentOptions& changed) {
        changed.model.router = LinearRouterOptions{.trainable = false, .bias = true};
      },
      "model.router.trainable", "got false, but train.optimizer.likelihood fits the gates, too; needs true");
}

TEST_CASE("what a frozen router leaves at its start is refused") {
  ExperimentOptions frozen = small_experiment();
  frozen.model.router = LinearRouterOptions{.trainable = false};
  check_refused(
      frozen, [](ExperimentOptions& changed) { changed.model.gating.train = NoisyTopKGatingOptions{.k = 2}; },
      "model.gating.train.noise",
      "got \"learned\", but the router does not learn, so its noise does not either; needs \"uniform\"");
  check_refused(
      frozen,
      [](ExperimentOptions& changed) { changed.model.gating.train = TopPGatingOptions{.learnable = true}; },
      "model.gating.train.learnable",
      "got true, but the router does not learn, so its threshold does not either");
}

TEST_CASE("a field of a router whose other field makes it useless is refused") {
  const ExperimentOptions small = small_experiment();
  check_refused(
      small, [](ExperimentOptions& changed) { changed.model.router = HashRouterOptions{.bits = 3}; },
      "model.router.bits", "given, but model.router.of is \"token\"; only \"projection\" has bits");
  check_refused(
      small,
      [](ExperimentOptions& changed) {
        changed.model.router = SimilarityAwareRouterOptions{.tau_schedule = TauSchedule::geometric};
      },
      "model.router.tau_schedule", "given, but model.router.tau_end is not");
  check_refused(
      small, [](ExperimentOptions& changed) { changed.model.gating.balance_rule = BalanceRule::error; },
      "model.gating.balance_rule", "given, but model.gating.balance_rate is not");
}

TEST_CASE("tokens of a sequence are rows to start at, and kinds of targets may be classes") {
  ExperimentOptions options = small_experiment();
  options.data = data_of({{"generator", "token_topics"},
                          {"tokens", 4},
                          {"topics", 3},
                          {"dim", 6},
                          {"target", {{"kind", "class"}, {"classes", 3}}},
                          {"train_samples", 1}});
  options.model.router = LinearRouterOptions{.init = "train_samples"};
  options.loss.task = "cross_entropy";
  check(options);
  check_refused(
      options, [](ExperimentOptions& changed) { changed.model.experts = 5; }, "model.router.init",
      "got \"train_samples\", needs a training sample for each of model.experts = 5, but there are 4");
}

TEST_CASE("routers that read images need data that have them") {
  for (const RouterKind& kind : RouterAxis::table()) {
    CAPTURE(kind.name);
    ExperimentOptions options = small_experiment();
    options.model = model_of_kinds(kind.name, "mlp", SoftGatingOptions{}, kExperts);
    if (kind.needs_image) {
      CHECK_THROWS_AS(check(options), InvalidOption);
    } else {
      check(options);
    }
  }
}

}  // namespace
}  // namespace moelab::experiment_test
