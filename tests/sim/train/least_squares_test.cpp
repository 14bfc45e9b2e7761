#include "sim/train/least_squares.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/train/best_fit.h"
#include "tests/sim/train/regression_fit.h"

namespace moelab::least_squares_test {
namespace {

/// The fit of noiseless data ends at ‖∇L‖ ≤ 1e-8 at least; the least curvatures of these problems are near
/// 1e-2.
constexpr double kRecovered = 1e-5;

TEST_CASE("without noise the fit recovers the measure, for every router and expert") {
  for (const Json& router :
       {Json{{"kind", "linear"}, {"bias", true}}, Json{{"kind", "cosine"}}, kPerturbed}) {
    for (const Json& expert : {Json{{"kind", "linear"}}, kSquare, Json{{"kind", "relu"}}}) {
      CAPTURE(router.dump());
      CAPTURE(expert.dump());
      Fit fit(router, expert, 2, 0, 1000);
      const FitOutcome outcome = fit.run(kWarm);
      CHECK(outcome.state == TrainState::done);
      CHECK(outcome.converged);
      CHECK(fit.error() < kRecovered);
      const MixingMeasure found = fit.places().read(fit.model.parameters);
      const MixingMeasure& truth = *fit.problem->true_measure();
      CHECK((found.slope - truth.slope).cwiseAbs().maxCoeff() < kRecovered);
      CHECK((found.intercept - truth.intercept).cwiseAbs().maxCoeff() < kRecovered);
      const Matrix directions = effective_directions(found), expected = effective_directions(truth);
      CHECK((directions.row(1) - directions.row(0) - expected.row(1) + expected.row(0)).norm() < kRecovered);
      CHECK(std::abs(found.bias[1] - found.bias[0] - truth.bias[1] + truth.bias[0]) < kRecovered);
    }
  }
}

TEST_CASE("with more data the fit comes nearer, and its loss is below that of the truth") {
  double before = INFINITY;
  for (const int samples : {500, 8000}) {
    Fit fit(kPerturbed, kSquare, 2, 0.2, samples);
    CHECK(fit.run(kWarm).converged);
    Fit at_truth(kPerturbed, kSquare, 2, 0.2, samples);
    at_truth.places().write(*at_truth.problem->true_measure(), at_truth.model.parameters);
    CHECK(fit.loss() < at_truth.loss());
    CHECK(fit.error() < before / 2);  // a factor 16 in samples: 4 in error
    before = fit.error();
  }
}

TEST_CASE("a fit that does not converge is told, and a second start is made") {
  Fit fit(kPerturbed, kSquare, 3, 0.2, 500);
  const FitOutcome outcome = fit.run(kWarm, 5);
  CHECK(outcome.state == TrainState::done);
  CHECK_FALSE(outcome.converged);
  CHECK(outcome.starts == 2);
  CHECK(fit.recorded == std::vector<std::int64_t>{0, outcome.evaluations});
  Fit once(kPerturbed, kSquare, 3, 0.2, 500);
  CHECK(once.run(WarmStartOptions{.perturbation = 0.1, .tries = 1}, 5).starts == 1);
  // The kept start is the better of the two.
  CHECK(fit.loss() <= once.loss());
}

TEST_CASE("a cold start begins at the model's own weights, and a second one elsewhere") {
  Fit fit(kPerturbed, kSquare, 2, 0.2, 500), other(kPerturbed, kSquare, 2, 0.2, 500);
  const double before = fit.loss();
  const FitOutcome outcome = fit.run(ColdStartOptions{.tries = 3}, 1);
  CHECK(outcome.starts == 3);
  CHECK(fit.loss() <= before);
  CHECK(other.run(ColdStartOptions{.tries = 1}, 1).starts == 1);
  CHECK(std::abs(other.loss() - before) <= 1e-15);  // one evaluation looks at the start and moves nowhere
}

TEST_CASE("warm starts share a component's weight, and the fits before the last do not depend on it") {
  const Fit fit(kPerturbed, kSquare, 3, 0.2, 10);
  const MixingMeasure& truth = *fit.problem->true_measure();
  Engine engine(1), same(1), still(1);
  const MixingMeasure exact = near_truth(truth, 3, 0, engine);
  CHECK(exact.gate.row(2) == truth.gate.row(0));
  CHECK(std::abs(std::exp(exact.bias[0]) + std::exp(exact.bias[2]) - std::exp(truth.bias[0])) < 1e-15);
  CHECK(exact.bias[1] == truth.bias[1]);
  const MixingMeasure two = near_truth(truth, 2, 0.1, same), three = near_truth(truth, 3, 0.1, still);
  CHECK(two.gate == three.gate.topRows(2));
  CHECK(two.slope == three.slope.topRows(2));
  CHECK((two.slope - truth.slope).cwiseAbs().maxCoeff() > 0.01);
}

TEST_CASE("a frozen router stays where the fit starts, and a fit can be abandoned") {
  Json frozen = kPerturbed;
  frozen["trainable"] = false;
  Fit fit(frozen, kSquare, 2, 0.2, 500);
  const AlignedVector<double> before = fit.model.parameters;
  fit.run(ColdStartOptions{.tries = 1}, 50);
  const auto router_end = static_cast<std::ptrdiff_t>(fit.model.network->groups().front().end);
  CHECK(std::equal(before.begin(), before.begin() + router_end, fit.model.parameters.begin()));
  CHECK_FALSE(std::equal(before.begin(), before.end(), fit.model.parameters.begin()));
  Fit abandoned(kPerturbed, kSquare, 2, 0.2, 500);
  abandoned.stop_after = 3;
  CHECK(abandoned.run(kWarm).state == TrainState::interrupted);
  CHECK(abandoned.calls == 4);
}

TEST_CASE("data without a finite loss make a fit diverge") {
  Fit fit(kPerturbed, kSquare, 2, 0.2, 50);
  fit.data.y[7] = INFINITY;
  CHECK(fit.run(kWarm).state == TrainState::diverged);
}

}  // namespace
}  // namespace moelab::least_squares_test
