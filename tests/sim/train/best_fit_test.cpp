#include "sim/train/best_fit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/numerics.h"
#include "sim/train/least_squares.h"
#include "tests/sim/train/regression_fit.h"

namespace moelab::best_fit_test {
namespace {

const Json kLinear = {{"kind", "linear"}, {"bias", true}};
const Json kLinearExpert = {{"kind", "linear"}};

const auto kGoOn = std::function<bool(double)>([](double) { return false; });

double unbounded() {
  return std::numeric_limits<double>::infinity();
}

TEST_CASE("one linear expert is polished to the solution of the normal equations") {
  Fit fit(kLinear, kLinearExpert, 1, 0.3, 200);
  SampleLoss loss(fit.model, fit.objective, fit.data, unbounded(), kGoOn, fit.workspace);
  const PolishedFit found = polish(loss, loss.parameters(), 20);
  CHECK(found.converged);
  loss.set_parameters(found.parameters.data());
  const MixingMeasure measure = fit.places().read(fit.model.parameters);
  Matrix x(200, 3);
  x << MatrixView(fit.data.x.data(), 200, 2), Vector::Ones(200);
  const Vector y = Eigen::Map<const Vector>(fit.data.y.data(), 200);
  const Vector solution = least_norm_solution(x.transpose() * x, x.transpose() * y);
  CHECK(measure.slope(0, 0) == doctest::Approx(solution[0]).epsilon(1e-5));
  CHECK(measure.slope(0, 1) == doctest::Approx(solution[1]).epsilon(1e-5));
  CHECK(measure.intercept[0] == doctest::Approx(solution[2]).epsilon(1e-5));
  CHECK(found.loss == doctest::Approx((x * solution - y).squaredNorm() / 200).epsilon(1e-12));
}

TEST_CASE("a polished fit has no gradient left, and what it promises is what a step takes") {
  Fit fit(kPerturbed, kSquare, 2, 0.2, 500);
  fit.run(kWarm, 30);
  SampleLoss loss(fit.model, fit.objective, fit.data, unbounded(), kGoOn, fit.workspace);
  const std::vector<double> start = loss.parameters();
  const double before = loss.evaluate(start.data(), nullptr);
  const PolishedFit none = polish(loss, start, 0), all = polish(loss, start, 100);
  CHECK(none.loss == before);
  CHECK(none.promised > all.promised);
  CHECK(all.converged);
  CHECK(all.loss < before);
  // From close by, Gauss and Newton's promise is the loss that there is to gain.
  CHECK(none.promised == doctest::Approx(before - all.loss).epsilon(0.3));
  std::vector<double> gradient(start.size());
  loss.evaluate(all.parameters.data(), gradient.data());
  for (const double entry : gradient) CHECK(std::abs(entry) < 1e-6);
}

TEST_CASE("parameters stay within the bound, and those held there count as converged") {
  Fit fit(kLinear, kLinearExpert, 2, 0.2, 500);
  SampleLoss loss(fit.model, fit.objective, fit.data, 0.6, kGoOn, fit.workspace);
  const PolishedFit found = polish(loss, loss.parameters(), 200);
  CHECK(found.converged);
  int held = 0;
  for (const double value : found.parameters) {
    CHECK(std::abs(value) <= 0.6);
    held += std::abs(value) == 0.6;
  }
  CHECK(held > 0);
}

TEST_CASE("the best of many starts is no worse than one start, and more starts find the same") {
  for (const Json& expert : {kSquare, kLinearExpert}) {
    CAPTURE(expert.dump());
    Fit warm(kPerturbed, expert, 2, 0.2, 500), best(kPerturbed, expert, 2, 0.2, 500),
        more(kPerturbed, expert, 2, 0.2, 500);
    warm.run(kWarm);
    const FitOutcome outcome = best.run(BestStartOptions{.starts = 6, .rows = 250}, 1000);
    REQUIRE(outcome.minima);
    CHECK(outcome.converged);
    CHECK(outcome.starts == 6);
    CHECK(outcome.minima->near >= 1);
    CHECK(best.loss() <= warm.loss() * (1 + 1e-12));
    more.run(BestStartOptions{.starts = 12, .rows = 250}, 1000);
    CHECK(more.loss() == doctest::Approx(best.loss()).epsilon(1e-9));
    CHECK(best.recorded == std::vector<std::int64_t>{0, outcome.evaluations});
  }
}

TEST_CASE("where two experts share a gate the data leave many fits, and their distance is told") {
  Fit fit(kLinear, kLinearExpert, 3, 0.2, 300);
  const FitOutcome outcome = fit.run(BestStartOptions{.starts = 9, .polished = 6}, 60);
  REQUIRE(outcome.minima);
  CHECK(outcome.minima->distinct > 1);
  CHECK(outcome.minima->near > 1);
  CHECK(outcome.minima->diameter > 0.1);
}

TEST_CASE("a fit of many starts that is interrupted says so") {
  Fit fit(kLinear, kLinearExpert, 2, 0.2, 500);
  fit.stop_after = 10;
  CHECK(fit.run(BestStartOptions{}).state == TrainState::interrupted);
  CHECK(fit.calls < 40);
}

TEST_CASE("clusters of k-means start experts at the regressions of well-separated groups") {
  // Two groups of inputs, y = 1 + 2 x and y = 3 − x on them.
  TrainingSet<double> data;
  data.rows = 400;
  Engine engine(3);
  for (int i = 0; i < data.rows; ++i) {
    const double x = (i % 2 == 0 ? -4 : 4) + 0.3 * draw_normal(engine);
    data.x.push_back(x);
    data.y.push_back(i % 2 == 0 ? 1 + 2 * x : 3 - x);
  }
  const MixtureForm form;
  Engine stream(1);
  const MixingMeasure start = clustered_start(form, data, data.rows, 1, 2, stream);
  const Eigen::Index left = start.gate(0, 0) < 0 ? 0 : 1, right = 1 - left;
  CHECK(start.gate(left, 0) == doctest::Approx(-4).epsilon(0.05));
  CHECK(start.bias[left] == doctest::Approx(-8).epsilon(0.1));
  // The ridge keeps them from being equal: values, not coefficients, are near.
  CHECK(start.slope(left, 0) * -4 + start.intercept[left] == doctest::Approx(-7).epsilon(0.05));
  CHECK(start.slope(right, 0) * 4 + start.intercept[right] == doctest::Approx(-1).epsilon(0.1));
}

TEST_CASE("the distance between sets of experts, by hand") {
  MixingMeasure one{{}, Matrix::Zero(2, 1), Vector::Zero(2), Matrix(2, 1), Vector(2)}, other = one;
  one.slope << 0, 3;
  one.intercept << 0, 4;
  other.slope << 0, 3;
  other.intercept << 1, 4;
  CHECK(expert_distance(one, other) == 1);
  other.slope << 0, 0;
  CHECK(expert_distance(one, other) == doctest::Approx(3));  // (3, 4) to (0, 4)
  other = one;
  other.slope *= -1;
  other.intercept *= -1;
  CHECK(expert_distance(one, other) == doctest::Approx(5));
  one.form.power = other.form.power = 2;
  CHECK(expert_distance(one, other) == 0);
}

}  // namespace
}  // namespace moelab::best_fit_test
