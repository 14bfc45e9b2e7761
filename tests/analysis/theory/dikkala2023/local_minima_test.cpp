#include <doctest/doctest.h>

#include "analysis/theory/dikkala2023.h"

namespace moelab::local_minima_test {
namespace {

const CheckEffort kEffort;

/// x₂ ← x₂ + x₁ / 2: the irrelevant part is no longer independent of the rest.
void make_dependent(SubspaceProblem& problem) {
  const Matrix signal = problem.population.x * problem.relevant;
  problem.population.x += signal / 2 * problem.irrelevant.transpose();
}

/// y ← y + x₂ / 2 in the first output: the target depends on the irrelevant part.
void make_relevant(SubspaceProblem& problem) {
  problem.population.y.col(0) += problem.population.x * problem.irrelevant.col(0) / 2;
}

}  // namespace

TEST_CASE("theorem 1 holds at local minima; with a dependent or a relevant rest it fails") {
  for (const bool rotated : {false, true}) {
    CAPTURE(rotated);
    CHECK(verdict_of(check_local_minima(kEffort, rotated)) == CheckVerdict::holds);
    CHECK(verdict_of(check_local_minima(kEffort, rotated, make_dependent)) == CheckVerdict::fails);
  }
  CHECK(verdict_of(check_local_minima(kEffort, true, make_relevant)) == CheckVerdict::fails);
}

TEST_CASE("theorem 1 holds with a quasi-random rule; with a dependent rest it fails") {
  CHECK(verdict_of(check_local_minima_quasi_random(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_local_minima_quasi_random(kEffort, make_dependent)) == CheckVerdict::fails);
}

TEST_CASE("descent leaves a saddle of theorem 1, unless it starts exactly there") {
  CHECK(verdict_of(check_saddle_is_left(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_saddle_is_left(kEffort, 0)) == CheckVerdict::fails);
}

TEST_CASE("the descent step of theorem 1 lowers the loss; without the shift of b it fails") {
  CHECK(verdict_of(check_descent_step(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_descent_step(kEffort, false)) == CheckVerdict::fails);
}

TEST_CASE("the slope of shrinking has a term of the curvature in b") {
  CHECK(verdict_of(check_shrinking_slope(kEffort)) == CheckVerdict::holds);
  const auto penalty_alone = [](const Matrix&, const Matrix& irrelevant, double penalty) {
    return -2 * penalty * irrelevant.squaredNorm();
  };
  CHECK(verdict_of(check_shrinking_slope(kEffort, penalty_alone)) == CheckVerdict::fails);
}

TEST_CASE("the curvature at a saddle is -2 lambda1, not -lambda1 or 0") {
  CHECK(verdict_of(check_saddle_curvature(kEffort)) == CheckVerdict::holds);
  for (const double factor : {-1.0, 0.0}) {
    const auto wrong = [&](double penalty) { return factor * penalty; };
    CHECK(verdict_of(check_saddle_curvature(kEffort, wrong)) == CheckVerdict::fails);
  }
}

}  // namespace moelab::local_minima_test
