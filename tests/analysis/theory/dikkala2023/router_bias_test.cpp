#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/dikkala2023.h"

namespace moelab::router_bias_test {
namespace {

const CheckEffort kEffort;
/// Central differences with step 1e-5 of a loss of order one.
constexpr double kDifferenceError = 1e-8;

}  // namespace

TEST_CASE("the derivatives of the biased mixture are those of its loss") {
  Engine engine = Seeds{3, 0}.stream(Purpose::evaluation, 0);
  const Matrix draws = draw_normals(engine, 4, kBiasedEntries);
  std::vector<BiasedSample<double>> samples;
  for (int i = 0; i < 3; ++i)
    samples.push_back({{draws(i, 0), draws(i, 1), draws(i, 2)}, {draws(i, 3), draws(i, 4)}, 1.0 / 3});
  BiasedPoint<double> theta;
  for (int i = 0; i < kBiasedEntries; ++i) theta[size(i)] = draws(3, i);
  const BiasedLoss<double> local = biased_loss(samples, theta, true);
  constexpr double step = 1e-5;
  for (int i = 0; i < kBiasedEntries; ++i) {
    BiasedPoint<double> up = theta, down = theta;
    up[size(i)] += step;
    down[size(i)] -= step;
    const BiasedLoss<double> above = biased_loss(samples, up, true), below = biased_loss(samples, down, true);
    CHECK(std::abs(local.gradient[size(i)] - (above.value - below.value) / (2 * step)) < kDifferenceError);
    for (int j = 0; j < kBiasedEntries; ++j) {
      const double slope = (above.gradient[size(j)] - below.gradient[size(j)]) / (2 * step);
      CHECK(std::abs(local.hessian[size(i)][size(j)] - slope) < kDifferenceError);
    }
  }
}

TEST_CASE("without a bias there is a certified local minimum with irrelevant weights, which a bias unmakes") {
  const CheckFinding finding = check_without_bias(kEffort);
  CHECK(verdict_of(finding) == CheckVerdict::fails);
  // From an independent computation with quadrature in double precision and BFGS.
  CHECK(finding.measured == doctest::Approx(0.756).epsilon(1e-3));
  CHECK(finding.details[0].second == doctest::Approx(0.7209).epsilon(1e-4));
  CHECK(finding.hypotheses[0].value == doctest::Approx(0.00448844).epsilon(1e-5));
  CHECK(finding.details[2].second < -2 * kBiasedPenalty);
}

TEST_CASE("two points make a local minimum with an irrelevant weight") {
  const CheckFinding finding = check_two_points(kEffort);
  CHECK(verdict_of(finding) == CheckVerdict::fails);
  CHECK(finding.measured * finding.measured == doctest::Approx(1 - std::cbrt(0.003 / 4)));
}

TEST_CASE("at a global minimum independence is enough; the bias has to move") {
  CHECK(verdict_of(check_global_step(kEffort, IrrelevantLaw::two_point)) == CheckVerdict::holds);
  CHECK(verdict_of(check_global_step(kEffort, IrrelevantLaw::laplace)) == CheckVerdict::holds);
  CHECK(verdict_of(check_global_step(kEffort, IrrelevantLaw::two_point, false)) == CheckVerdict::fails);
}

TEST_CASE("small steps lower the loss under a self-decomposable law where the bias moves") {
  CHECK(verdict_of(check_local_step(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_local_step(kEffort, false)) == CheckVerdict::fails);
}

}  // namespace moelab::router_bias_test
