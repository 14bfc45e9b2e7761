#include "analysis/theory/perturbed_cosine/identifiability.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/quasi_random.h"

namespace moelab::identifiability_test {
namespace {

const CheckEffort kEffort;

Matrix inputs() {
  Engine engine = Seeds{7, 0}.stream(Purpose::evaluation, 0);
  return QuasiRandom(2, engine).normals(64);
}

std::vector<MixtureForm> forms() {
  using Router = MixtureForm::Router;
  using Expert = MixtureForm::Expert;
  return {{.router = Router::linear},
          {.router = Router::linear, .expert = Expert::relu},
          {.router = Router::cosine, .power = 2},
          {.router = Router::cosine, .tau1 = 1, .tau2 = 0.5, .power = 3}};
}

}  // namespace

TEST_CASE("regression values of many rows are those of each row") {
  const Matrix x = inputs();
  for (const MixtureForm& form : forms()) {
    const MixingMeasure measure = example_measure(form);
    const Vector values = regression_values(measure, x);
    for (Eigen::Index row = 0; row < x.rows(); ++row)
      CHECK(values[row] == doctest::Approx(regression_value(measure, x.row(row))).epsilon(1e-13));
  }
}

TEST_CASE("the components of a split cell stand the spread apart and keep their weight") {
  const SplitCell cell{example_measure({.router = MixtureForm::Router::linear})};
  Vector z = Vector::Zero(cell.coordinates());
  z[2] = 3;  // along the first slope
  const MixingMeasure split = cell.at(z, 0.1);
  REQUIRE(split.components() == 3);
  CHECK(split.slope(0, 0) == doctest::Approx(1.05));
  CHECK(split.slope(2, 0) == doctest::Approx(0.95));
  CHECK(split.gate.row(2) == cell.truth.gate.row(0));
  CHECK(std::exp(split.bias[0]) + std::exp(split.bias[2]) == doctest::Approx(1));
}

TEST_CASE("a split cell stays within its family") {
  const SplitCell cell{example_measure({.router = MixtureForm::Router::cosine}), ExpertFamily::fixed_length};
  Engine engine = Seeds{7, 0}.stream(Purpose::evaluation, 1);
  const Vector z = draw_normals(engine, 1, cell.coordinates()).row(0).transpose();
  const MixingMeasure split = cell.at(z, 0.3);
  for (const Eigen::Index j : {0, 2}) {
    CHECK(split.gate.row(j).norm() == doctest::Approx(2));
    CHECK(std::hypot(split.slope.row(j).norm(), split.intercept[j]) == doctest::Approx(std::sqrt(1.5)));
  }
}

TEST_CASE("experts that are scaled against each other cannot be told, others can") {
  for (const MixtureForm& form : forms()) {
    CAPTURE(form.power);
    CHECK(verdict_of(check_scaled_experts(kEffort, form, 0.7)) == CheckVerdict::holds);
  }
  // A wrong degree: what is right for the square is not for the line.
  MixtureForm square{.power = 2};
  const MixingMeasure truth = example_measure(square);
  MixingMeasure moved = truth;
  moved.slope.row(0) *= 1.1;
  CHECK((regression_values(moved, inputs()) - regression_values(truth, inputs())).norm() > 0.1);
}

TEST_CASE(
    "only a cosine without perturbation is blind to lengths, and only a linear router mixes derivatives") {
  using Router = MixtureForm::Router;
  CHECK(verdict_of(check_radius(kEffort, {.router = Router::cosine})) == CheckVerdict::holds);
  CHECK(verdict_of(check_radius(kEffort, {.router = Router::linear})) == CheckVerdict::fails);
  CHECK(verdict_of(check_radius(kEffort, {.router = Router::cosine, .tau1 = 0.1})) == CheckVerdict::fails);
  CHECK(verdict_of(check_mixed_derivative(kEffort, {.router = Router::linear, .power = 2})) ==
        CheckVerdict::holds);
  CHECK(verdict_of(check_mixed_derivative(kEffort, {.router = Router::cosine})) == CheckVerdict::fails);
}

TEST_CASE("flatness is of order two once lengths are known, and without bound before") {
  const MixtureForm form{.router = MixtureForm::Router::linear};
  const CheckFinding finding = check_flatness(kEffort, form);
  CHECK(verdict_of(finding) == CheckVerdict::holds);
  CHECK(finding.details[1].second > 1e-7);
  const CheckFinding whole = check_flatness(kEffort, form, ExpertFamily::whole);
  CHECK(whole.details[1].second < 1e-12);
  CHECK(verdict_of(whole) != CheckVerdict::holds);
}

}  // namespace moelab::identifiability_test
