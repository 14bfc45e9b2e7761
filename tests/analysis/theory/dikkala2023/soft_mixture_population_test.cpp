#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023.h"

namespace moelab::soft_mixture_population_test {
namespace {

constexpr double kStep = 1e-5;
/// Central differences of a loss of order 10: rounding 1e-10, curvature 1e-9.
constexpr double kDifferences = 1e-8;

SubspaceProblem some_problem() {
  Engine engine = check_stream({}, "soft_mixture_population_test", 0);
  return draw_subspace_problem(engine, true);
}

Vector some_parameters(const SubspaceProblem& problem) {
  Engine engine = check_stream({}, "soft_mixture_population_test", 1);
  return draw_parameters(engine, problem);
}

}  // namespace

TEST_CASE("the loss of one point by hand") {
  // softmax(ln 3 · x, 0) = (3/4, 1/4) at x = 1; f = 3/4 · 2 + 1/4 · (−2) = 1, y = 3.
  SoftMixturePopulation population{Matrix{{1.0}}, Matrix{{3.0}}, Vector::Ones(1), 2, 0.5, 0.25};
  const Vector theta{{std::log(2.0), 0.0, std::log(1.5), 0.0, 2.0, -2.0}};
  CHECK(population.probabilities(theta)(0, 0) == doctest::Approx(0.75));
  CHECK(population.task_loss(theta) == doctest::Approx(4));
  const double penalties = 0.5 * std::log(2.0) * std::log(2.0) + 0.25 * 8;
  CHECK(population.loss(theta) == doctest::Approx(4 + penalties));
}

TEST_CASE("the gradient of the population loss against central differences") {
  const SubspaceProblem problem = some_problem();
  const Vector theta = some_parameters(problem);
  const Vector gradient = problem.population.gradient(theta);
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    Vector above = theta, below = theta;
    above[i] += kStep;
    below[i] -= kStep;
    const double slope = (problem.population.loss(above) - problem.population.loss(below)) / (2 * kStep);
    CHECK(std::abs(gradient[i] - slope) < kDifferences);
  }
}

TEST_CASE("the rule for the irrelevant part has the moments of N(0, I)") {
  const NormalRule& rule = irrelevant_rule();
  constexpr double kRounding = 1e-12;
  CHECK(std::abs(rule.weight.sum() - 1) < kRounding);
  CHECK((rule.points.transpose() * rule.weight).norm() < kRounding);
  const Matrix second = rule.points.transpose() * rule.weight.asDiagonal() * rule.points;
  CHECK((second - Matrix::Identity(2, 2)).norm() < kRounding);
  const Vector fourth = rule.points.array().pow(4).matrix().transpose() * rule.weight;
  CHECK((fourth.array() - 3).abs().maxCoeff() < 10 * kRounding);
}

TEST_CASE("descent ends at a stationary point of lower loss") {
  const SubspaceProblem problem = some_problem();
  const Vector start = some_parameters(problem);
  const DescentEnd end = descend(problem.population, start, 1e-9);
  CHECK(end.gradient_norm <= 1e-9);
  CHECK(problem.population.loss(end.theta) < problem.population.loss(start));
}

}  // namespace moelab::soft_mixture_population_test
