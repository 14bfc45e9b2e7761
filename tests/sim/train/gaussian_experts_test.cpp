/// Likelihoods against NumPy (gaussian_experts.py wrote gaussian_experts.json), and fits by them.

#include "sim/train/gaussian_experts.h"

#include <doctest/doctest.h>

#include "sim/model/router/routers.h"
#include "sim/train/least_squares.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/model/example_model.h"
#include "tests/sim/reference_numbers.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::gaussian_experts_test {
namespace {

/// A round's ridges of 1e-10 and Newton's last step.
constexpr double kRound = 1e-6;

Matrix matrix_of(const Json& rows) {
  const std::vector<double> values = numbers_of(rows);
  const auto count = static_cast<Eigen::Index>(rows.size());
  return MatrixView(values.data(), count, static_cast<Eigen::Index>(values.size()) / count);
}

Vector vector_of(const Json& values) {
  return matrix_of(values);
}

GaussianExperts mixture_of(const Json& item) {
  return {{{},
           matrix_of(item.at("gate")),
           vector_of(item.at("bias")),
           matrix_of(item.at("slope")),
           vector_of(item.at("intercept"))},
          vector_of(item.at("variance"))};
}

const Json& cases() {
  static const Json stored = read_json_file(MOELAB_TEST_DATA "/sim/train/gaussian_experts.json");
  return stored.at("cases");
}

const auto kNever = [] { return false; };

TEST_CASE("likelihoods, gradients and a round of EM are NumPy's") {
  REQUIRE(cases().size() == 2);
  for (const Json& item : cases()) {
    const RegressionSample sample{matrix_of(item.at("x")), vector_of(item.at("y"))};
    GaussianExperts mixture = mixture_of(item);
    CHECK(is_near(mean_log_likelihood(mixture, sample), item.at("likelihood")));
    const Vector gradient = likelihood_gradient(mixture, sample, {});
    const std::vector<double> expected = numbers_of(item.at("gradient"));
    REQUIRE(gradient.size() == static_cast<Eigen::Index>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(is_near(gradient[static_cast<Eigen::Index>(i)], expected[i]));
    CHECK(is_near(em_round(sample, {}, 0, mixture), item.at("likelihood")));
    const GaussianExperts after = mixture_of(item.at("after"));
    CHECK((mixture.variance - after.variance).cwiseAbs().maxCoeff() < kRound);
    CHECK((mixture.measure.slope - after.measure.slope).cwiseAbs().maxCoeff() < kRound);
    CHECK((mixture.measure.gate - after.measure.gate).cwiseAbs().maxCoeff() < 100 * kRound);
    CHECK((mixture.measure.bias - after.measure.bias).cwiseAbs().maxCoeff() < 100 * kRound);
  }
}

TEST_CASE("Newton's method after a few rounds of EM ends at NumPy's maximum, with no gradient") {
  for (const Json& item : cases()) {
    const RegressionSample sample{matrix_of(item.at("x")), vector_of(item.at("y"))};
    const GaussianFit rough = fit_by_em(mixture_of(item), sample, {}, 5, kNever);
    const GaussianFit fit = polish_likelihood(rough.mixture, sample, {}, 100, kNever);
    CHECK(fit.converged);
    CHECK(fit.likelihood > rough.likelihood);
    CHECK(fit.likelihood == doctest::Approx(item.at("maximum").get<double>()).epsilon(1e-9));
    CHECK(likelihood_gradient(fit.mixture, sample, {}).cwiseAbs().maxCoeff() < 1e-5);
    CHECK_FALSE(polish_likelihood(mixture_of(item), sample, {}, 0, kNever).converged);
  }
}

TEST_CASE(
    "the gradient is that of central differences, whatever is known, and EM never lowers the likelihood") {
  const Json& item = cases()[1];
  const RegressionSample sample{matrix_of(item.at("x")), vector_of(item.at("y"))};
  for (const GaussianForm& form : {GaussianForm{}, GaussianForm{.gate = false}, GaussianForm{.slope = false},
                                   GaussianForm{.gate = false, .slope = false, .variance = 0.5}}) {
    GaussianExperts mixture = mixture_of(item);
    if (!form.gate) mixture.measure.gate.setZero();
    if (!form.slope) mixture.measure.slope.setZero();
    if (form.variance) mixture.variance.setConstant(*form.variance);
    const Vector theta = free_parameters(mixture, form),
                 gradient = likelihood_gradient(mixture, sample, form);
    REQUIRE(gradient.size() == theta.size());
    GaussianExperts moved = mixture;
    for (Eigen::Index i = 0; i < theta.size(); ++i) {
      Vector at = theta;
      at[i] += 1e-6;
      set_free_parameters(at, form, moved);
      const double above = mean_log_likelihood(moved, sample);
      at[i] -= 2e-6;
      set_free_parameters(at, form, moved);
      CHECK(gradient[i] ==
            doctest::Approx((above - mean_log_likelihood(moved, sample)) / 2e-6).epsilon(1e-6));
    }
    double before = -INFINITY;
    for (int round = 0; round < 10; ++round) {
      const double value = em_round(sample, form, 0, mixture);
      CHECK(value >= before - 1e-12);
      before = value;
    }
    CHECK(mixture.measure.gate.isZero() == !form.gate);
    CHECK(mixture.measure.slope.isZero() == !form.slope);
    if (form.variance) CHECK(mixture.variance.isConstant(*form.variance));
  }
}

/// Two linear experts of variances 0.04 and 0.09 on [0, 1], and the model that is fitted to draws of them.
struct LikelihoodRun {
  explicit LikelihoodRun(int experts, int samples, const Json& expert = {{"kind", "linear"}})
      : problem(draw_problem(data_of({{"generator", "moe_regression"},
                                      {"dim", 1},
                                      {"router", "linear"},
                                      {"expert", "linear"},
                                      {"inputs", {{"kind", "uniform"}, {"half_width", 0.5}, {"center", 0.5}}},
                                      {"law", {{"kind", "mixture"}, {"variance", {0.04, 0.09}}}},
                                      {"measure",
                                       {{"kind", "given"},
                                        {"gate", {{6}, {0}}},
                                        {"bias", {-3, 0}},
                                        {"slope", {{-3}, {4}}},
                                        {"intercept", {2, 0}}}}}),
                             seeds)),
        options(example_model(LinearRouterOptions{.bias = true}, resolve_options<ExpertOptions>(expert),
                              SoftGatingOptions{}, experts)),
        model(options, problem->layout(), {seeds}),
        workspace(model.network->make_workspace()) {
    set = draw_set(*problem, seeds, Purpose::train_data, samples);
    data = {samples, {set.x.data(), set.x.data() + samples}, {set.y.data(), set.y.data() + samples}};
  }

  FitOutcome run(const FitStart& start, int stop_after = 1 << 30) {
    TrainOptions train;
    train.optimizer = LeastSquaresOptions{.likelihood = LikelihoodOptions{}};
    train.steps = 100;
    train.start = start;
    int calls = 0;
    const TrainCallbacks callbacks = {[](std::int64_t) {}, [&](double) { return ++calls > stop_after; }};
    return fit_least_squares(model, options, {*task}, data, train, problem->true_measure(), seeds, callbacks,
                             workspace);
  }

  Seeds seeds{8, 0};
  std::unique_ptr<Problem> problem;
  ModelOptions options;
  Model<double> model;
  Workspace<double> workspace;
  std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  Dataset set;
  TrainingSet<double> data;
};

const BestStartOptions kBest{.starts = 9, .rows = 1000, .evaluations = 100};

TEST_CASE("y of a mixture comes from the component of its label, as often as the gates say") {
  constexpr int kSamples = 20000;
  const LikelihoodRun run(2, kSamples);
  const MixingMeasure& truth = *run.problem->true_measure();
  double squares[2] = {0, 0}, counts[2] = {0, 0}, expected = 0;
  for (int i = 0; i < kSamples; ++i) {
    const int label = run.set.cluster[static_cast<std::size_t>(i)];
    const double error = run.set.y(i, 0) - expert_values(truth, run.set.x.row(i))[label];
    squares[label] += error * error;
    counts[label] += 1;
    expected += gate_values(truth, run.set.x.row(i))[0];
    CHECK((run.set.x(i, 0) >= 0 && run.set.x(i, 0) <= 1));
  }
  // Five standard errors, at most 1/2 for a count and √2 ν for a square.
  CHECK(std::abs(counts[0] - expected) < 5 * 0.5 * std::sqrt(kSamples));
  for (const int j : {0, 1})
    CHECK(std::abs(squares[j] / counts[j] / truth.variance[j] - 1) < 5 * std::sqrt(2 / counts[j]));
}

TEST_CASE("the fit of most likelihood is above the truth's, and near the truth") {
  LikelihoodRun run(2, 4000);
  const FitOutcome outcome = run.run(kBest);
  CHECK(outcome.state == TrainState::done);
  CHECK(outcome.converged);
  CHECK(outcome.starts == 9);
  REQUIRE(outcome.likelihood_gain);
  CHECK(*outcome.likelihood_gain > 0);
  CHECK(*outcome.likelihood_gain < 4 * 10 / (2.0 * 4000));  // in the mean p / (2 n), p = 8 here
  REQUIRE(outcome.mixture);
  const Eigen::Index first = outcome.mixture->measure.slope(0, 0) < 0 ? 0 : 1;
  CHECK(outcome.mixture->measure.slope(first, 0) == doctest::Approx(-3).epsilon(0.05));
  CHECK(outcome.mixture->variance[first] == doctest::Approx(0.04).epsilon(0.1));
  CHECK(outcome.mixture->variance[1 - first] == doctest::Approx(0.09).epsilon(0.1));
  // The model ends at the gates and experts of the fit.
  Matrix fitted(4000, 1);
  predict(run.model, run.model.network->soft_gating(), run.data.x.data(), 4000, run.workspace, fitted.data());
  for (int i = 0; i < 50; ++i)
    CHECK(fitted(i, 0) == doctest::Approx(regression_value(outcome.mixture->measure, run.set.x.row(i))));
}

TEST_CASE("a component more than the truth has gains a little, and never loses") {
  LikelihoodRun two(2, 1000), three(3, 1000);
  const FitOutcome few = two.run(kBest), many = three.run(kBest);
  CHECK(many.likelihood >= few.likelihood - 1e-6);
  CHECK(many.likelihood - few.likelihood < 20.0 / 1000);
  CHECK(many.mixture->variance.minCoeff() > 0);
}

TEST_CASE("a search by likelihood is at least as high as many starts, with the oracle as a bound") {
  for (const int experts : {2, 3}) {
    CAPTURE(experts);
    LikelihoodRun found(experts, 1000), many(experts, 1000);
    SearchStartOptions search;
    search.rows = 1000;
    search.starts = 40;
    const FitOutcome outcome = found.run(search), best = many.run(kBest);
    REQUIRE(outcome.search);
    CHECK(outcome.state == TrainState::done);
    CHECK(outcome.likelihood >= best.likelihood - 1e-6);
    CHECK(outcome.search->oracle_gap.value() <= 1e-6);
    CHECK(outcome.search->times_best >= 1);
    CHECK((outcome.search->is_settled || outcome.starts == 40));
  }
}

TEST_CASE("fits by likelihood that cannot be are refused, and one may be interrupted") {
  LikelihoodRun relu(2, 100, {{"kind", "relu"}}), linear(2, 100);
  CHECK_THROWS_WITH_AS(relu.run(kBest), doctest::Contains("train.optimizer.likelihood"), InvalidOption);
  CHECK_THROWS_WITH_AS(linear.run(ColdStartOptions{}), doctest::Contains("train.start"), InvalidOption);
  CHECK(linear.run(kBest, 5).state == TrainState::interrupted);
}

}  // namespace
}  // namespace moelab::gaussian_experts_test
