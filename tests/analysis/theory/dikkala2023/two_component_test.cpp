#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/quadrature/tanh_sinh.hpp>
#include <cmath>
#include <limits>

#include "analysis/theory/dikkala2023.h"
#include "sim/base/error.h"

namespace moelab::two_component_test {
namespace {

/// The quadrature's stated absolute error.
constexpr double kQuadratureError = 1e-13;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TwoComponentProblem problem_of(int dim, double noise_std, double radius) {
  return {Vector::Unit(dim, 0), Vector{{1.0, -2.0}}, noise_std, radius};
}

std::array<double, 6> entries(const RouterMoments& m) {
  return {m.q, m.q_q, m.dq, m.q_dq, m.t_dq, m.t_q_dq};
}

/// The moments by an adaptive rule in t itself, with tanh and the χ² probability as they are written.
std::array<double, 6> adaptive_moments(const TwoComponentProblem& problem, double signal, double norm) {
  const double sigma = problem.noise_std, radius = problem.radius;
  const int across = static_cast<int>(problem.mean.size()) - 1;
  const double reach = std::min(radius, 8.5 * sigma);
  boost::math::quadrature::tanh_sinh<double> rule;
  const auto integrate = [&](const auto& of_t) {
    const auto integrand = [&](double t) {
      const double inside = std::max((radius * radius - t * t) / (sigma * sigma), 0.0);
      const double probability =
          across == 0 || std::isinf(radius) ? 1.0 : cdf(boost::math::chi_squared(across), inside);
      return std::exp(-t * t / (2 * sigma * sigma)) * probability * of_t(t);
    };
    // Piecewise: one adaptive rule over 17 σ would miss the peak's scale.
    double sum = 0;
    constexpr int kPieces = 8;
    for (int i = 0; i < kPieces; ++i)
      sum += rule.integrate(integrand, -reach + 2 * reach * i / kPieces,
                            -reach + 2 * reach * (i + 1) / kPieces, 1e-13);
    return sum;
  };
  const auto q = [&](double t) { return std::tanh((signal + norm * t) / 2); };
  const auto dq = [&](double t) { return (1 - q(t) * q(t)) / 2; };
  const double mass = integrate([](double) { return 1.0; });
  return {integrate(q) / mass,
          integrate([&](double t) { return q(t) * q(t); }) / mass,
          integrate(dq) / mass,
          integrate([&](double t) { return q(t) * dq(t); }) / mass,
          integrate([&](double t) { return t * dq(t); }) / mass,
          integrate([&](double t) { return t * q(t) * dq(t); }) / mass};
}

double largest_difference(const TwoComponentProblem& problem, double signal, double norm,
                          double radius_of_program) {
  TwoComponentProblem other = problem;
  other.radius = radius_of_program;
  const std::array<double, 6> found = entries(TwoComponentPopulation(other).moments(signal, norm));
  const std::array<double, 6> expected = adaptive_moments(problem, signal, norm);
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(found[i] - expected[i]));
  return largest;
}

}  // namespace

TEST_CASE("two components: moments agree with adaptive quadrature") {
  for (const int dim : {1, 2, 3, 10, 21}) {
    for (const auto& [given_sigma, given_radius] :
         {std::pair{0.15, 0.7}, {0.5, 0.3}, {0.05, 0.95}, {0.4, kInfinity}}) {
      const auto& sigma = given_sigma;
      const auto& radius = given_radius;
      const TwoComponentProblem problem = problem_of(dim, sigma, radius);
      const double reach = std::min(radius, 8.5 * sigma);
      for (const double norm : {0.0, 0.5, 20 / reach}) {
        CAPTURE(dim);
        CAPTURE(sigma);
        CAPTURE(norm);
        CHECK(largest_difference(problem, 0.9 * norm, norm, radius) < kQuadratureError);
      }
    }
  }
  // Another truncation is another problem.
  CHECK_FALSE(largest_difference(problem_of(10, 0.5, 0.7), 3, 3, 0.8) < kQuadratureError);
}

TEST_CASE("two components: by hand at w = 0 and at u = u*") {
  const TwoComponentPopulation population(problem_of(4, 0.2, 0.6));
  const Vector zero = Vector::Zero(4), u = Vector{{0.5, 1.5}};
  // q = 0, q' = 1/2: L = 2 ‖v‖², ∂L/∂u = 0, ∂L/∂w = −2 (vᵀu) z.
  CHECK(population.loss(zero, u) == doctest::Approx(10));
  CHECK(population.gradient(zero, u).expert.norm() == 0);
  CHECK((population.gradient(zero, u).router - 5.0 * population.problem().mean).norm() < kQuadratureError);
  const Vector w = Vector{{2.0, 1.0, -1.0, 0.5}};
  const Vector best = population.best_expert(w);
  CHECK(population.gradient(w, best).expert.norm() < kQuadratureError);
  CHECK(population.loss(w, best) < population.loss(w, 1.01 * best));
  CHECK(population.loss(w, best) < population.loss(w, 0.99 * best));
}

TEST_CASE("two components: whole Gaussians are stationary at w = 2 z / sigma^2, u = v, and only there") {
  // Two moments of error 1e-13 each, times 4 ‖v‖² = 20.
  constexpr double kGradientError = 40 * kQuadratureError;
  const double sigma = 0.8;
  const TwoComponentPopulation population(problem_of(5, sigma, kInfinity));
  const Vector w = 2 / (sigma * sigma) * population.problem().mean;
  const TwoComponentGradient at_limit = population.gradient(w, population.problem().value);
  CHECK(at_limit.router.norm() < kGradientError);
  CHECK(at_limit.expert.norm() < kGradientError);
  CHECK_FALSE(population.gradient(1.01 * w, population.problem().value).router.norm() < kGradientError);
}

TEST_CASE("two components: bad problems are refused") {
  CHECK_THROWS_AS(TwoComponentPopulation({Vector(), Vector::Ones(1), 0.1, 0.5}), InvalidOption);
  CHECK_THROWS_AS(TwoComponentPopulation({Vector::Ones(2), Vector(), 0.1, 0.5}), InvalidOption);
  for (const double bad : {0.0, -1.0, std::nan("")}) {
    CHECK_THROWS_AS(TwoComponentPopulation(problem_of(3, bad, 0.5)), InvalidOption);
    CHECK_THROWS_AS(TwoComponentPopulation(problem_of(3, 0.1, bad)), InvalidOption);
  }
  // χ² with 1999 degrees of freedom below 25: no double holds that probability.
  CHECK_THROWS_AS(TwoComponentPopulation(problem_of(2000, 0.1, 0.5)), InvalidOption);
}

}  // namespace moelab::two_component_test
