/// Tasks in sequence, steps of minimum norm, and phases in which parts of the experts learn.

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <numeric>
#include <set>

#include "sim/data/gaussian_mixture.h"
#include "sim/data/task_pool.h"
#include "sim/model/router/routers.h"
#include "sim/train/experiment.h"
#include "sim/train/minimum_norm.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::rounds_test {
namespace {

const Seeds kSeeds{3, 1};

std::vector<int> tasks_of(RoundOptions::Order order, int steps, int count) {
  TaskRounds rounds({.steps = steps, .order = order}, 4, kSeeds.stream(Purpose::batch_order));
  std::vector<int> tasks;
  for (int step = 0; step < count; ++step) {
    rounds.advance();
    tasks.push_back(rounds.task());
    CHECK(rounds.is_last_step() == ((step + 1) % steps == 0));
  }
  return tasks;
}

ExperimentOptions sample_rounds() {
  ExperimentOptions options;
  options.data =
      GaussianMixtureOptions{.clusters = 4, .dim = 3, .target = gaussian_mixture::ConstantTarget{2}};
  options.data.train_samples = 60;
  options.data.test_samples = 10;
  options.model =
      example_model(LinearRouterOptions{}, MlpExpertOptions{.depth = 2, .width = 4}, SoftGatingOptions{}, 3);
  options.train = small_steps(12);
  options.train.rounds = RoundOptions{.steps = 3, .order = RoundOptions::Order::cycle};
  options.train.precision = TrainOptions::Precision::in_double;
  return options;
}

PhaseOptions phase_of(const ExperimentOptions& options, const Learns& learns) {
  return {
      .name = "only", .data = options.data, .loss = options.loss, .train = options.train, .learns = learns};
}

std::map<std::string, std::vector<double>> trained_arrays(const ExperimentOptions& options,
                                                          bool train = true) {
  Experiment<double> experiment(options, kSeeds);
  if (train) experiment.train();
  std::map<std::string, std::vector<double>> arrays;
  for (const NamedArray<double>& array : experiment.model().network->arrays(experiment.model().parameters))
    arrays[array.name] = {array.values.begin(), array.values.end()};
  return arrays;
}

}  // namespace

TEST_CASE("rounds: a task stays for its steps, in turn, in random orders of all, or at random") {
  using Order = RoundOptions::Order;
  CHECK(tasks_of(Order::cycle, 2, 10) == std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3, 0, 0});
  const std::vector<int> shuffled = tasks_of(Order::shuffled, 1, 8);
  CHECK(std::set<int>(shuffled.begin(), shuffled.begin() + 4).size() == 4);
  CHECK(std::set<int>(shuffled.begin() + 4, shuffled.end()).size() == 4);
  const std::vector<int> uniform = tasks_of(Order::uniform, 1, 4000);
  for (int task = 0; task < 4; ++task) {
    const double share = static_cast<double>(std::count(uniform.begin(), uniform.end(), task)) / 4000;
    CHECK(std::abs(share - 0.25) < 4 * std::sqrt(0.25 * 0.75 / 4000));  // four standard errors
  }
}

TEST_CASE("rounds: batches of a training set and of the population hold the round's task alone") {
  const ExperimentOptions options = sample_rounds();
  const std::unique_ptr<Problem> problem = draw_problem(options.data, kSeeds);
  const TrainingSet<double> set = draw_training_set<double>(*problem, kSeeds, 60, 0, true);
  TrainOptions train = options.train;
  SampleBatches<double> samples(set, problem->layout(), 8, kSeeds, 0, {}, task_rounds(train, 4, kSeeds, 0));
  train.batch_size.reset();
  train.gradient = TrainOptions::Gradient::population;
  train.points = 8;
  PopulationBatches<double> population(*problem, train, kSeeds, 0, {}, task_rounds(train, 4, kSeeds, 0));
  for (int step = 0; step < 12; ++step) {
    for (BatchSource<double>* batches :
         {static_cast<BatchSource<double>*>(&samples), static_cast<BatchSource<double>*>(&population)}) {
      const int rows = batches->advance();
      for (int i = 0; i < rows; ++i) CHECK(batches->samples().labels[i] == step / 3);
      CHECK(batches->finished_task() == (step % 3 == 2 ? std::optional(step / 3) : std::nullopt));
    }
  }
}

TEST_CASE("rounds: a task without a training sample is passed over, whatever the order is") {
  const ExperimentOptions options = sample_rounds();
  const std::unique_ptr<Problem> problem = draw_problem(options.data, kSeeds);
  TrainingSet<double> set = draw_training_set<double>(*problem, kSeeds, 60, 0, true);
  for (int& label : set.labels) label = label == 2 ? 1 : label;
  using Order = RoundOptions::Order;
  for (const Order order : {Order::uniform, Order::cycle, Order::shuffled}) {
    TrainOptions train = options.train;
    train.rounds = RoundOptions{.steps = 2, .order = order};
    SampleBatches<double> batches(set, problem->layout(), 8, kSeeds, 0, {}, task_rounds(train, 4, kSeeds, 0));
    std::multiset<int> tasks;
    for (int step = 0; step < 60; ++step) {
      batches.advance();
      if (step % 2 == 0) continue;
      tasks.insert(batches.samples().labels[0]);
      CHECK(batches.finished_task() == batches.samples().labels[0]);
    }
    for (const int task : {0, 1, 3}) CHECK(tasks.count(task) >= (order == Order::uniform ? 1U : 10U));
  }
}

TEST_CASE("rounds: the trainer tells of every round, and refuses data without clusters") {
  std::vector<std::pair<std::int64_t, int>> told;
  TrainCallbacks callbacks;
  callbacks.round = [&](const FinishedRound& round) { told.emplace_back(round.step, round.task); };
  Experiment<double> experiment(sample_rounds(), kSeeds);
  experiment.train(callbacks);
  CHECK(told == std::vector<std::pair<std::int64_t, int>>{{3, 0}, {6, 1}, {9, 2}, {12, 3}});
  ExperimentOptions options = sample_rounds();
  options.train.redraw = false;
  options.train.batch_size.reset();
  options.train.gradient = TrainOptions::Gradient::population;
  options.data.train_samples.reset();
  check_refused(options, "train.redraw", "got false, but train.rounds needs new samples in every round");
}

TEST_CASE("ridge steps solve the normal equations of the batch, for the step and for the weights") {
  ExperimentOptions options = sample_rounds();
  options.data = TaskPoolOptions{.tasks = 2, .groups = 2, .dim = 3, .rows = 5};
  options.model = example_model(LinearRouterOptions{}, LinearExpertOptions{.init_scale = 1, .bias = false},
                                SequenceTop1GatingOptions{}, 1);
  options.train.lr = PerGroup(1);
  const std::unique_ptr<Problem> problem = draw_problem(options.data, kSeeds);
  Engine engine(5);
  const Dataset data = problem->draw(engine, {Purpose::population, 0, 1});
  const MatrixView x(data.x.data(), 5, 3);
  const Vector y = data.y.row(0).transpose();
  for (const auto penalty : {MinimumNormOptions::Penalty::step, MinimumNormOptions::Penalty::weights}) {
    options.train.optimizer = MinimumNormOptions{.ridge = 0.2, .penalty = penalty};
    Model<double> model(options.model, problem->layout(), {kSeeds});
    Workspace<double> workspace = model.network->make_workspace();
    const auto weights = [&] {
      for (const NamedArray<double>& array : model.network->arrays(model.parameters))
        if (array.name == "expert_weight_1") return Vector(Eigen::Map<const Vector>(array.values.data(), 3));
      return Vector();
    };
    const Vector before = weights();
    const Matrix normal = x.transpose() * x / 5 + 0.2 * Matrix::Identity(3, 3);
    const Vector from = penalty == MinimumNormOptions::Penalty::step ? before : Vector(Vector::Zero(3));
    const Vector expected = from + normal.ldlt().solve(x.transpose() * (y - x * from) / 5);
    MinimumNormSteps<double>(options.train, {}, model, workspace)
        .move({data.x.data()}, data.y.data(), 1, 0, 1);
    CHECK((weights() - expected).norm() < 1e-12);
  }
}

TEST_CASE("minimum norm: nothing moves where no expert learns, and a model without mixtures is refused") {
  ExperimentOptions options = sample_rounds();
  options.train.lr = PerGroup(1);
  const std::unique_ptr<Problem> problem = draw_problem(options.data, kSeeds);
  Engine engine(5);
  const Dataset data = problem->draw(engine, {Purpose::population, 0, 4});
  for (const std::optional<double> ridge : {std::optional<double>(), std::optional(0.2)}) {
    options.train.optimizer = MinimumNormOptions{.ridge = ridge};
    Model<double> model(options.model, problem->layout(), {kSeeds});
    Workspace<double> workspace = model.network->make_workspace();
    std::vector<std::size_t> all(model.parameters.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto before = model.parameters;
    MinimumNormSteps<double>(options.train, all, model, workspace)
        .move({data.x.data()}, data.y.data(), 4, 0, 1);
    CHECK(model.parameters == before);
  }
  options.model.shared_experts = 1;
  CHECK_THROWS_WITH_AS(check_minimum_norm(options.train, options.model, options.loss),
                       doctest::Contains("needs model.shared_experts 0"), InvalidOption);
  options.model.shared_experts = 0;
  options.model.kind = DenseOptions{.match = Match::moe};
  CHECK_THROWS_WITH_AS(check_minimum_norm(options.train, options.model, options.loss),
                       doctest::Contains("needs a model with experts"), InvalidOption);
}

TEST_CASE("a phase moves the first layers or the last layers of the experts alone") {
  ExperimentOptions options = sample_rounds();
  const auto moved = [&](const Learns& learns) {
    const auto start = trained_arrays(options, false);
    ExperimentOptions own = options;
    own.phases = {phase_of(options, learns)};
    std::set<std::string> names;
    for (const auto& [name, values] : trained_arrays(own))
      if (values != start.at(name)) names.insert(name);
    return names;
  };
  Learns first{false, false, false}, last = first;
  first.first_layers = last.read_outs = true;
  CHECK(moved(first) == std::set<std::string>{"expert_weight_1"});
  CHECK(moved(last) == std::set<std::string>{"expert_bias_2", "expert_weight_2"});
  // Experts of one layer: its weights are the first and the last.
  options.model.expert = LinearExpertOptions{};
  CHECK(moved(first) == std::set<std::string>{"expert_weight_1"});
  CHECK(moved(last) == std::set<std::string>{"expert_bias_1", "expert_weight_1"});
  options.model.expert = FiltersExpertOptions{.bias = true};
  CHECK(moved(first) == std::set<std::string>{"expert_weight"});
  CHECK(moved(last) == std::set<std::string>{"expert_bias", "expert_weight"});
  // A constant has no weights.
  options.model.expert = ConstantExpertOptions{};
  CHECK(moved(first).empty());
  CHECK(moved(last) == std::set<std::string>{"expert_output"});
}

}  // namespace moelab::rounds_test
