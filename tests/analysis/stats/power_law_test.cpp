#include <doctest/doctest.h>

#include <cmath>

#include "analysis/stats/rates.h"
#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::power_law_test {
namespace {

/// Rounding of logarithms and of a solve of three unknowns.
constexpr double kRounding = 1e-10;

/// x: k in {2, 4, 8}, d in {1, 3}.
Matrix grid() {
  Matrix x(6, 2);
  x << 2, 1, 4, 1, 8, 1, 2, 3, 4, 3, 8, 3;
  return x;
}

Vector law(const Matrix& x, double constant, double first, double second) {
  return (constant * x.col(0).array().pow(first) * x.col(1).array().pow(second)).matrix();
}

TEST_CASE("an exact law has its exponents, and intervals of no width") {
  const auto fit = fit_power_law(grid(), law(grid(), 3, 0.5, -2));
  REQUIRE(fit);
  CHECK(fit->constant == doctest::Approx(3).epsilon(kRounding));
  CHECK(fit->exponents[0] == doctest::Approx(0.5).epsilon(kRounding));
  CHECK(fit->exponents[1] == doctest::Approx(-2).epsilon(kRounding));
  CHECK(fit->deviation < kRounding);
  for (const Interval& interval : fit->intervals) CHECK(interval.high - interval.low < kRounding);
}

TEST_CASE("one exponent worked out by hand") {
  // ln x = 0, 1, 2 and ln y = 0, 1, 1: slope 1/2, residuals -1/6, 1/3, -1/6, s² = 1/6, standard error
  // √(1/12).
  Matrix x(3, 1);
  x << 1, std::exp(1.0), std::exp(2.0);
  Vector y(3);
  y << 1, std::exp(1.0), std::exp(1.0);
  const auto fit = fit_power_law(x, y);
  REQUIRE(fit);
  const double half_width = 12.706204736 / std::sqrt(12.0);  // t with one degree of freedom at .975
  CHECK(fit->exponents[0] == doctest::Approx(0.5).epsilon(kRounding));
  CHECK(fit->intervals[0].low == doctest::Approx(0.5 - half_width).epsilon(1e-9));
  CHECK(fit->intervals[0].high == doctest::Approx(0.5 + half_width).epsilon(1e-9));
}

TEST_CASE("intervals hold the exponent in 95 % of draws") {
  Engine engine(5);
  int held = 0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw) {
    Vector y = law(grid(), 1, 1, 0);
    for (double& value : y) value *= std::exp(0.3 * draw_normal(engine));
    const auto fit = fit_power_law(grid(), y);
    held += fit->intervals[0].low <= 1 && 1 <= fit->intervals[0].high;
  }
  // Four standard errors of a frequency of .95 over 2000 draws are .02.
  CHECK(std::abs(static_cast<double>(held) / kDraws - 0.95) < 0.02);
}

TEST_CASE("too few points, or columns that go together, have no fit") {
  CHECK_FALSE(fit_power_law(grid().topRows(3), law(grid(), 1, 1, 1).head(3)));
  Matrix constant = grid();
  constant.col(1).setConstant(7);
  CHECK_FALSE(fit_power_law(constant, law(grid(), 1, 1, 1)));
  Matrix twins = grid();
  twins.col(1) = (3 * twins.col(0).array().square()).matrix();
  CHECK_FALSE(fit_power_law(twins, law(grid(), 1, 1, 1)));
  Matrix negative = grid();
  negative(0, 0) = -1;
  CHECK_THROWS_AS(fit_power_law(negative, law(grid(), 1, 1, 1)), InvalidOption);
}

TEST_CASE("one law, worked out by hand") {
  // ln (y ÷ x) = 0, 1, 2: mean 1, variance 1.
  const Vector x{{1, 2, 3}}, y{{1, 2 * std::exp(1.0), 3 * std::exp(2.0)}};
  const auto fit = fit_proportion(x, y);
  REQUIRE(fit);
  CHECK(fit->constant == doctest::Approx(std::exp(1.0)).epsilon(kRounding));
  CHECK(fit->deviation == doctest::Approx(1).epsilon(kRounding));
  CHECK_FALSE(fit_proportion(x.head(1), y.head(1)));
  CHECK_THROWS_AS(fit_proportion(-x, y), InvalidOption);
}

}  // namespace
}  // namespace moelab::power_law_test
