#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/perturbed_cosine.h"
#include "sim/base/random.h"

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
  std::vector<MixtureForm> all = forms();
  for (const NamedForm& gate : gate_forms()) all.push_back(gate.form);
  for (const MixtureForm& form : all) {
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

TEST_CASE("a split cell of no spread is the truth, under every softmax gate of all components") {
  const Matrix x = inputs();
  for (const NamedForm& gate : gate_forms()) {
    if (gate.form.gate != MixtureForm::Gate::softmax || gate.form.selected > 0) continue;
    CAPTURE(gate.name);
    const SplitCell cell{example_measure(gate.form)};
    Vector z = Vector::Zero(cell.coordinates());
    z[1] = 1;
    z[z.size() - 2] = 0.7;
    const Vector truth = regression_values(cell.truth, x);
    CHECK((regression_values(cell.at(z, 0), x) - truth).cwiseAbs().maxCoeff() < 1e-13);
    CHECK((regression_values(cell.at(z, 0.1), x) - truth).cwiseAbs().maxCoeff() > 1e-6);
  }
}

TEST_CASE("what a form cannot see is all that it does not see to first order, and nothing else is named") {
  for (const NamedForm& gate : gate_forms()) {
    for (const NamedForm& expert : with_experts(gate)) {
      CAPTURE(gate.name);
      CAPTURE(expert.name);
      CHECK(verdict_of(check_invariances(kEffort, expert.form)) == CheckVerdict::holds);
      CHECK(verdict_of(check_gram(kEffort, expert.form)) == CheckVerdict::holds);
      for (const Invariance& invariance : invariances(example_measure(expert.form)))
        CHECK(invariance.moved.gate.size() + invariance.moved.slope.size() > 0);
    }
  }
  // By hand: a common shift of three numbers; the lengths of two rows and a shift of biases; none.
  CHECK(check_gram(kEffort, {}).measured == 3);
  CHECK(check_gram(kEffort, {.router = MixtureForm::Router::cosine}).measured == 3);
  CHECK(check_gram(kEffort, {.router = MixtureForm::Router::cosine, .tau1 = 1}).measured == 3);
  CHECK(check_gram(kEffort, {.gate = MixtureForm::Gate::sigmoid}).measured == 0);
  CHECK(check_gram(kEffort, {.temperature = true}).measured == 4);
}

TEST_CASE("of a form that sees more than is named, or less, the Gram matrix tells") {
  // A shared expert with linear ones gives way; with squares it does not.
  const MixtureForm shared{.gate = MixtureForm::Gate::normalised_sigmoid, .shared = 1};
  CHECK(check_gram(kEffort, shared).measured == 3);
  MixtureForm squares = shared;
  squares.power = 2;
  CHECK(check_gram(kEffort, squares).measured == 0);
}

TEST_CASE(
    "unit experts: f sees every direction on the sphere, and any split of a component to second order") {
  for (const NamedForm& gate : gate_forms()) {
    for (const NamedForm& expert : with_unit_experts(gate)) {
      CAPTURE(gate.name);
      CAPTURE(expert.name);
      CHECK(verdict_of(check_gram(kEffort, expert.form)) == CheckVerdict::holds);
      CHECK_FALSE(unit_argument(expert.form).empty());
      if (gate.form.gate != MixtureForm::Gate::softmax || gate.form.selected > 0) continue;
      if (expert.form.expert == MixtureForm::Expert::relu) continue;
      CHECK(verdict_of(check_second_order(kEffort, expert.form)) == CheckVerdict::holds);
    }
  }
  // Of any length, linear experts and powers can be scaled against each other; GELUs and sigmoids cannot.
  for (const NamedForm& expert : with_unit_experts(gate_forms()[0])) {
    CAPTURE(expert.name);
    MixtureForm free = expert.form;
    free.unit = false;
    if (free.expert == MixtureForm::Expert::relu) continue;
    const bool is_power = free.expert == MixtureForm::Expert::power;
    CHECK((verdict_of(check_second_order(kEffort, free)) == CheckVerdict::fails) == is_power);
  }
}

TEST_CASE("the Gram matrix of second derivatives has the relations that are known") {
  // Linear router, linear experts: d2/dbeta_u da_v is symmetric in u and v. On the circle of (a, b) there are
  // two tangents, and with them two more relations of that kind would need d2/dbeta db.
  const SplitCell cell{example_measure({.unit = true}), ExpertFamily::fixed_length};
  const SecondOrder found = second_order(cell, inputs());
  CHECK(found.directions == 4);
  CHECK(found.unseen >= 1);
  CHECK(found.least > kUnseenChange);
  // A cosine sees no length of beta1.
  const SplitCell cosine{example_measure({.router = MixtureForm::Router::cosine, .unit = true}),
                         ExpertFamily::fixed_length};
  CHECK(second_order(cosine, inputs()).directions == 3);
}

TEST_CASE("rectifiers are told apart at 3/2, smooth experts at 2") {
  MixtureForm form{.expert = MixtureForm::Expert::relu, .unit = true};
  CHECK(verdict_of(check_kinks(kEffort, form)) == CheckVerdict::holds);
  form.expert = MixtureForm::Expert::gelu;
  CHECK(verdict_of(check_kinks(kEffort, form)) == CheckVerdict::fails);
}

TEST_CASE("published rates: those of Table 1, and what was not found is told") {
  const std::vector<NamedForm> gates = gate_forms();
  CHECK(published_rate(gates[0], with_experts(gates[0])[2]) == "n^-1/4 (Table 1)");
  CHECK(published_rate(gates[2], with_experts(gates[2])[0]) == "1/log^tau n (Table 1)");
  CHECK(published_rate({"squared_distance", {}}, with_experts(gates[0])[0]) == "none found");
}

TEST_CASE("experts that are scaled against each other cannot be told, others can") {
  for (const MixtureForm& form : forms()) {
    CAPTURE(form.power);
    CHECK(verdict_of(check_scaled_experts(kEffort, form, 0.7)) == CheckVerdict::holds);
  }
  for (const NamedForm& gate : gate_forms()) {
    CAPTURE(gate.name);
    const bool is_exact = gate.form.selected == 0 && gate.form.gate != MixtureForm::Gate::normalised_sigmoid;
    const CheckFinding finding = check_scaled_experts(kEffort, gate.form, 0.7);
    CHECK((verdict_of(finding) == CheckVerdict::holds) == is_exact);
    CHECK((finding.measured > 0.01) == !is_exact);
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
  CHECK(finding.details[2].second > 1e-7);
  const CheckFinding whole = check_flatness(kEffort, form, ExpertFamily::whole);
  CHECK(whole.details[2].second < 1e-12);
  CHECK(verdict_of(whole) != CheckVerdict::holds);
}

}  // namespace moelab::identifiability_test
