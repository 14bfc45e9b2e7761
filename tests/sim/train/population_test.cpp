#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/model/router/routers.h"
#include "sim/train/measured_gradients.h"
#include "sim/train/trainer.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::population_test {
namespace {

constexpr Seeds kSeeds{11, 0};

DataOptions mixture_data() {
  return data_of({{"generator", "gaussian_mixture"},
                  {"clusters", 3},
                  {"mean_std", 1},
                  {"dim", 4},
                  {"target", {{"kind", "constant"}, {"dim", 2}}}});
}

TrainOptions population_options(const Json& changes = Json::object()) {
  Json train = {{"gradient", "population"}, {"points", 256}, {"lr", 0.1}, {"steps", 1}};
  train.update(changes);
  return resolve_options<TrainOptions>(train, "train");
}

using Batch = std::vector<double>;
Batch batch_of(BatchSource<double>& batches, const Layout& layout) {
  const int rows = batches.advance();
  return {batches.x(), batches.x() + rows * layout.sample_dim()};
}

TEST_CASE("population rules are new at every step, unless they are held fixed") {
  const std::unique_ptr<Problem> problem = draw_problem(mixture_data(), kSeeds);
  for (const char* rule : {"monte_carlo", "quasi_monte_carlo"}) {
    CAPTURE(rule);
    PopulationBatches<double> fresh(*problem, population_options({{"rule", rule}}), kSeeds);
    PopulationBatches<double> fixed(*problem, population_options({{"rule", rule}, {"redraw", false}}),
                                    kSeeds);
    PopulationBatches<double> other(*problem, population_options({{"rule", rule}}), kSeeds, 1);
    const Batch first = batch_of(fresh, problem->layout());
    CHECK(batch_of(fixed, problem->layout()) == first);
    CHECK(batch_of(fixed, problem->layout()) == first);
    CHECK(batch_of(fresh, problem->layout()) != first);
    CHECK(batch_of(other, problem->layout()) != first);
  }
}

/// Model, problem and loss of a small mixture.
struct Setting {
  GradientError error(const Json& changes, std::uint64_t moment = 0) {
    return population_gradient_error(model, {*loss}, *problem, population_options(changes), kSeeds, moment,
                                     workspace);
  }
  std::unique_ptr<Problem> problem = draw_problem(mixture_data(), kSeeds);
  std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  Model<double> model{
      model_of_kinds("linear", "constant", SoftGatingOptions{}, 4), problem->layout(), {kSeeds}};
  Workspace<double> workspace = model.network->make_workspace();
};

/// Means over 20 moments. A standard error from 8 rules has a relative deviation of about 1/√(2·7·p) with p
/// effective parameters, at most 0.27; over 20 moments 0.06: four of these are 0.24.
constexpr int kMoments = 20;
constexpr double kRelative = 0.24;

double mean_standard_error(Setting& setting, const Json& changes) {
  double sum = 0;
  for (std::uint64_t moment = 0; moment < kMoments; ++moment) {
    sum += setting.error(changes, moment).standard_error;
  }
  return sum / kMoments;
}

TEST_CASE("the standard error of a gradient falls as 1/√points, and faster for quasi-random points") {
  Setting setting;
  const double few = mean_standard_error(setting, {{"points", 256}});
  const double many = mean_standard_error(setting, {{"points", 4096}});
  CHECK(few / many == doctest::Approx(4).epsilon(kRelative));
  const double quasi = mean_standard_error(setting, {{"points", 4096}, {"rule", "quasi_monte_carlo"}});
  CHECK(quasi < many / 2);
}

TEST_CASE("both rules have the same expectation: the gradient of a very large sample") {
  Setting setting;
  const auto gradient_over = [&](const char* rule, int points) {
    PopulationBatches<double> batches(*setting.problem,
                                      population_options({{"points", points}, {"rule", rule}}), kSeeds);
    const int rows = batches.advance();
    loss_and_gradient(setting.model, {*setting.loss}, batches.x(), batches.y(), rows, setting.workspace);
    const AlignedVector<double>& gradient = setting.workspace.gradient;
    return Vector(Eigen::Map<const Vector>(gradient.data(), static_cast<Eigen::Index>(gradient.size())));
  };
  constexpr int kPoints = 1 << 16;
  const Vector independent = gradient_over("monte_carlo", kPoints);
  const Vector quasi = gradient_over("quasi_monte_carlo", kPoints);
  // The quasi-random one is much the better known: the difference has the standard error of the other.
  const double error = setting.error({{"points", kPoints}}).standard_error;
  CHECK((independent - quasi).norm() < 3 * error);
  CHECK(quasi.norm() > 20 * error);  // a zero gradient would not pass
}

TEST_CASE("training on fresh rules learns the population, training on one rule learns that rule") {
  const auto test_loss = [](bool redraw) {
    Setting setting;
    const TrainOptions options =
        population_options({{"points", 16}, {"steps", 2000}, {"lr", 0.1}, {"redraw", redraw}});
    PopulationBatches<double> batches(*setting.problem, options, kSeeds);
    const TrainOutcome outcome =
        train<double>(setting.model, {*setting.loss}, batches, 2000, options, {}, setting.workspace);
    CHECK(outcome.state == TrainState::done);
    const Dataset test = draw_set(*setting.problem, kSeeds, Purpose::test_data, 2000);
    return loss_and_gradient(setting.model, {*setting.loss}, test.x.data(), test.y.data(), 2000,
                             setting.workspace);
  };
  CHECK(test_loss(true) < 0.5 * test_loss(false));
}

TEST_CASE("a quasi-random rule needs a generator that maps uniforms") {
  class NoMap final : public Problem {
   public:
    Layout layout() const override { return {.input_dim = 2, .output_dim = 1}; }
    int clusters() const override { return 1; }
    Dataset draw(Engine&, const SampleRange&) const override { return {}; }
  };
  CHECK_THROWS_AS(
      PopulationBatches<double>(NoMap(), population_options({{"rule", "quasi_monte_carlo"}}), kSeeds),
      InvalidOption);
}

TEST_CASE("measuring the error of a gradient changes neither parameters nor state") {
  Setting setting;
  setting.model.state.progress = 0.25;
  const AlignedVector<double> parameters = setting.model.parameters;
  const State state = setting.model.state;
  const GradientError error = setting.error({{"points", 64}});
  CHECK(setting.model.parameters == parameters);
  CHECK(setting.model.state == state);
  CHECK(setting.error({{"points", 64}}).norm == error.norm);
}

TEST_CASE("a router started at samples holds them as its rows") {
  const int experts = 4;
  const ModelOptions options =
      example_model(LinearRouterOptions{.init = "train_samples", .init_scale = 0.5},
                    ExpertOptions::example("constant"), SoftGatingOptions{}, experts);
  const std::unique_ptr<Problem> problem = draw_problem(mixture_data(), kSeeds);
  const Dataset data = draw_set(*problem, kSeeds, Purpose::train_data, experts);
  const Model<double> model(options, problem->layout(), {kSeeds, &data.x});
  CHECK(model.network->starts_at_train_rows());
  const NamedArray<double> weight = arrays(model).front();
  REQUIRE(weight.name == "router_weight");
  for (Eigen::Index i = 0; i < data.x.size(); ++i) {
    CHECK(weight.values[static_cast<std::size_t>(i)] == 0.5 * data.x.data()[i]);
  }
}

}  // namespace
}  // namespace moelab::population_test
