#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::quasi_random_test {
namespace {

constexpr int kRandomisations = 30;
constexpr double kStandardErrors = 5;
/// Error orders that the design asks for: quasi-Monte Carlo at most −0.7, Monte Carlo near −0.5.
constexpr double kQuasiOrder = -0.7;
/// Root mean squares over 30 repetitions scatter by 13 %; over a range of 2⁸ in n the slope then by about
/// 0.04.
constexpr double kOrderError = 0.12;

/// n points (n, dim) from an engine.
using Sampler = std::function<Matrix(int count, int dim, Engine& engine)>;

Matrix quasi_uniforms(int count, int dim, Engine& engine) {
  return QuasiRandom(dim, engine).uniforms(count);
}

Matrix independent_uniforms(int count, int dim, Engine& engine) {
  Matrix points(count, dim);
  for (Eigen::Index i = 0; i < points.size(); ++i) points.data()[i] = draw_uniform(engine);
  return points;
}

/// The mean of Π_j (1 + (exp(u_j) − (e − 1))/2), whose integral is 1.
double estimate(const Matrix& points) {
  const double mean = std::exp(1.0) - 1;
  double sum = 0;
  for (Eigen::Index i = 0; i < points.rows(); ++i)
    sum += (1 + (points.row(i).array().exp() - mean) / 2).prod();
  return sum / static_cast<double>(points.rows());
}

/// The least-squares slope of log(root mean square error) against log n, n = 2⁵ … 2¹³.
double error_order(const Sampler& sampler, int dim) {
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  int sizes = 0;
  for (int power = 5; power <= 13; ++power, ++sizes) {
    double squares = 0;
    for (int i = 0; i < kRandomisations; ++i) {
      Engine engine = Seeds{1, static_cast<std::uint64_t>(i)}.stream(Purpose::evaluation,
                                                                     static_cast<std::uint64_t>(power));
      const double error = estimate(sampler(1 << power, dim, engine)) - 1;
      squares += error * error / kRandomisations;
    }
    const double x = power * std::log(2.0), y = std::log(squares) / 2;
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  return (sizes * sum_xy - sum_x * sum_y) / (sizes * sum_xx - sum_x * sum_x);
}

/// Whether every coordinate has exactly one point in each interval [j/n, (j + 1)/n).
bool evenly_spread(const Matrix& points) {
  for (Eigen::Index j = 0; j < points.cols(); ++j) {
    std::set<int> intervals;
    for (Eigen::Index i = 0; i < points.rows(); ++i)
      intervals.insert(static_cast<int>(points(i, j) * static_cast<double>(points.rows())));
    if (intervals.size() != static_cast<std::size_t>(points.rows())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("quasi-random: the error of a smooth mean falls faster than that of independent points") {
  CHECK(error_order(quasi_uniforms, 4) <= kQuasiOrder);
  CHECK(std::abs(error_order(independent_uniforms, 4) + 0.5) < kOrderError);
  CHECK_FALSE(error_order(independent_uniforms, 4) <= kQuasiOrder);
}

TEST_CASE("quasi-random: 2^m points are evenly spread in every coordinate") {
  Engine engine(3);
  CHECK(evenly_spread(QuasiRandom(50, engine).uniforms(256)));
  CHECK_FALSE(evenly_spread(independent_uniforms(256, 50, engine)));
  // Without the first point, as Boost's sequence comes, they are not.
  CHECK_FALSE(evenly_spread(QuasiRandom(50, engine).uniforms(257).bottomRows(256)));
}

TEST_CASE("quasi-random: every point is uniform over the shifts, so means have no bias") {
  constexpr int kShifts = 4000;
  double mean = 0, square = 0, product = 0;
  Engine engine(17);
  QuasiRandom points(2, engine);
  for (int i = 0; i < kShifts; ++i) {
    points.restart(engine);
    const Matrix drawn = points.uniforms(3);
    mean += drawn(2, 0) / kShifts;
    square += drawn(2, 1) * drawn(2, 1) / kShifts;
    product += drawn(2, 0) * drawn(2, 1) / kShifts;
  }
  const double root = std::sqrt(static_cast<double>(kShifts));
  CHECK(std::abs(mean - 1.0 / 2) < kStandardErrors * std::sqrt(1.0 / 12) / root);
  CHECK(std::abs(square - 1.0 / 3) < kStandardErrors * std::sqrt(4.0 / 45) / root);
  CHECK(std::abs(product - 1.0 / 4) < kStandardErrors * std::sqrt(1.0 / 9 - 1.0 / 16) / root);
  // One shift for both coordinates, the classical mistake, makes them equal: E[u²] is no 1/4.
  CHECK_FALSE(std::abs(square - 1.0 / 4) < kStandardErrors * std::sqrt(4.0 / 45) / root);
}

TEST_CASE("quasi-random: normals are the quantiles of the uniforms") {
  Engine engine(5), same(5);
  const Matrix uniform = QuasiRandom(3, engine).uniforms(1000);
  const Matrix normal = QuasiRandom(3, same).normals(1000);
  REQUIRE(normal.allFinite());
  CHECK(uniform.minCoeff() > 0);
  CHECK(uniform.maxCoeff() < 1);
  double largest = 0;
  for (Eigen::Index i = 0; i < normal.size(); ++i)
    largest =
        std::max(largest, std::abs(std::erfc(-normal.data()[i] / std::sqrt(2.0)) / 2 - uniform.data()[i]));
  CHECK(largest < 1e-15 * 10);  // rounding of erfc
  // The first 1000 points of a rule with error of order 1/n.
  CHECK(normal.colwise().mean().cwiseAbs().maxCoeff() < 0.02);
}

TEST_CASE("quasi-random: pieces equal the whole, restarting repeats the sequence with another shift") {
  Engine engine(9), same(9);
  const Matrix whole = QuasiRandom(7, engine).normals(100);
  QuasiRandom pieces(7, same);
  const Matrix first = pieces.normals(1), second = pieces.normals(60), third = pieces.normals(39);
  CHECK(whole.topRows(1) == first);
  CHECK(whole.middleRows(1, 60) == second);
  CHECK(whole.bottomRows(39) == third);
  pieces.restart(same);
  CHECK_FALSE(pieces.normals(100).isApprox(whole));
  Engine again(9);
  pieces.restart(again);
  CHECK(pieces.normals(100) == whole);
}

TEST_CASE("quasi-random: dimensions without direction numbers are refused") {
  Engine engine(1);
  CHECK_THROWS_AS(QuasiRandom(0, engine), UserError);
  CHECK_THROWS_AS(QuasiRandom(kMaximumQuasiDimension + 1, engine), UserError);
  CHECK(QuasiRandom(kMaximumQuasiDimension, engine).uniforms(2).cols() == kMaximumQuasiDimension);
}

}  // namespace moelab::quasi_random_test
