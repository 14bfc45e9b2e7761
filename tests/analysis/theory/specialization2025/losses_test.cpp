#include <doctest/doctest.h>

#include "analysis/theory/specialization2025.h"

namespace moelab::losses_test {
namespace {

const CheckEffort kEffort;
using Role = ParameterGroup::Role;

}  // namespace

TEST_CASE("balance: 1 where a factor is uniform, below 1 elsewhere; of other forms neither holds") {
  CHECK(verdict_of(check_uniform_factor(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_uniform_factor(kEffort, "aux_unnormalised")) == CheckVerdict::fails);
  // With two active experts the shares of first choices are not uniform where the shares of pairs are.
  CHECK(verdict_of(check_uniform_factor(kEffort, "switch")) == CheckVerdict::fails);
  CHECK(verdict_of(check_below_one()) == CheckVerdict::holds);
  CHECK(verdict_of(check_below_one("gshard")) == CheckVerdict::fails);
}

TEST_CASE("a loss has no gradient in the other part of its layer; it has one in its own, and in a stack") {
  for (const std::string term : {"aux", "variance"}) {
    CHECK(verdict_of(check_cross_gradient(kEffort, term, Role::expert)) == CheckVerdict::holds);
    CHECK(verdict_of(check_cross_gradient(kEffort, term, Role::expert, 2)) == CheckVerdict::fails);
    // The experts, to which the router's gradient is compared, have none.
    CHECK(verdict_of(check_cross_gradient(kEffort, term, Role::router)) == CheckVerdict::hypotheses_not_met);
  }
  const std::string term = "orthogonality";
  CHECK(verdict_of(check_cross_gradient(kEffort, term, Role::router)) == CheckVerdict::holds);
  CHECK(verdict_of(check_cross_gradient(kEffort, term, Role::router, 2)) == CheckVerdict::fails);
}

TEST_CASE("slopes by hand") {
  const Matrix scores = Matrix{{0.9, 0.1}, {0.5, 0.5}};
  CHECK(variance_loss(scores) == doctest::Approx(-0.08));
  CHECK(variance_slope(scores).isApprox(Matrix{{-0.2, 0.2}, {0.2, -0.2}}));
  CHECK(variance_slope_as_printed(scores).isApprox(Matrix{{-0.1, 0.1}, {0.1, -0.1}}));
  // x_1 = (2, 0), x_2 = (1, 1): 4/2 + 4/4; slopes 2 · 2 (1/2 + 1/4) x_2 − 2 · 4/16 x_1 and the other.
  const Matrix outputs = Matrix{{2.0, 0.0}, {1.0, 1.0}};
  CHECK(orthogonality_loss(outputs) == doctest::Approx(3));
  CHECK(orthogonality_slope(outputs).isApprox(Matrix{{2.0, 3.0}, {4.0, -2.0}}));
  CHECK(orthogonality_slope_as_printed(outputs).isApprox(Matrix{{1.0, 1.0}, {1.0, 0.0}}));
}

TEST_CASE("slopes: corrected ones hold, printed ones and those without one of the corrections fail") {
  CHECK(verdict_of(check_variance_slope(kEffort, variance_slope)) == CheckVerdict::holds);
  CHECK(verdict_of(check_variance_slope(kEffort, variance_slope_as_printed)) == CheckVerdict::fails);
  CHECK(verdict_of(check_orthogonality_slope(kEffort, orthogonality_slope)) == CheckVerdict::holds);
  CHECK(verdict_of(check_orthogonality_slope(kEffort, orthogonality_slope_as_printed)) ==
        CheckVerdict::fails);
  const MatrixSlope doubled = [](const Matrix& outputs) {
    return Matrix(2 * orthogonality_slope_as_printed(outputs));
  };
  CHECK(verdict_of(check_orthogonality_slope(kEffort, doubled)) == CheckVerdict::fails);
}

TEST_CASE("shrinking: projections fall by the square, cosines stay; not the other way round") {
  CHECK(verdict_of(check_shrinking(kEffort, "orthogonality", 2)) == CheckVerdict::holds);
  CHECK(verdict_of(check_shrinking(kEffort, "orthogonality_cosine", 0)) == CheckVerdict::holds);
  CHECK(verdict_of(check_shrinking(kEffort, "orthogonality", 0)) == CheckVerdict::fails);
  CHECK(verdict_of(check_shrinking(kEffort, "orthogonality_cosine", 2)) == CheckVerdict::fails);
}

TEST_CASE("gradients of the task need the gradient in the output, which is printed for no parameter") {
  for (const bool in_router : {false, true}) {
    CHECK(verdict_of(check_task_gradient(kEffort, in_router, ones_as_printed)) == CheckVerdict::fails);
    CHECK(verdict_of(check_task_gradient(kEffort, in_router, task_gradient)) == CheckVerdict::holds);
  }
}

}  // namespace moelab::losses_test
