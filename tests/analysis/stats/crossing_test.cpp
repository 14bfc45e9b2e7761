#include "analysis/stats/crossing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>

namespace moelab::crossing_test {
namespace {

std::optional<double> halved(double low, double high) {
  return high - low <= 0.1 ? std::nullopt : std::optional((low + high) / 2);
}

CurvePoint point(double x, std::vector<std::optional<double>> seeds) {
  return {x, std::move(seeds), true};
}

/// A bisection that has every point of a curve.
CrossingProgress search(const std::function<double(double)>& curve) {
  std::map<double, CurvePoint> points;
  return bisect(0, 1, halved, [&](double x) { return &(points[x] = point(x, {curve(x)})); });
}

/// How often the interval of a crossing misses the true one, 0.4, of curves whose start and slope vary from
/// seed to seed; `shift` moves the truth that it is held against.
double misses(int seeds, double shift) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  constexpr int kRuns = 4000;
  int missed = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<CurvePoint> curve;
    for (const double x : {0.0, 0.25, 0.375, 0.5, 1.0}) curve.push_back(point(x, {}));
    for (int seed = 0; seed < seeds; ++seed) {
      const double start = -1 + 0.15 * normal(engine), slope = 2.5 + 0.5 * normal(engine);
      for (CurvePoint& at : curve) at.seeds.emplace_back(start + slope * at.x);
    }
    std::size_t left = 0;
    while (left + 2 < curve.size() && *curve_mean(curve[left + 1]) < 0) ++left;
    const CrossingEstimate estimate = estimate_crossing(curve, left);
    const double truth = 0.4 + shift;
    if (estimate.low.value_or(0) > truth || estimate.high.value_or(1) < truth) ++missed;
  }
  return static_cast<double>(missed) / kRuns;
}

}  // namespace

TEST_CASE("crossing: bisection keeps the sides apart until the bracket is narrow enough") {
  const CrossingProgress rising = search([](double x) { return x - 0.3; });
  CHECK(rising.state == CrossingState::crosses);
  CHECK(rising.visited == std::vector<double>{0, 1, 0.5, 0.25, 0.375, 0.3125});
  CHECK(rising.low == 0.25);
  CHECK(rising.high == 0.3125);
  const CrossingProgress falling = search([](double x) { return 0.3 - x; });
  CHECK(falling.low == 0.25);
  CHECK(falling.high == 0.3125);
  CHECK(search([](double x) { return x - 0.5; }).high == 0.5);  // a mean of zero is above
}

TEST_CASE("crossing: a curve that does not cross is told by its side, after its ends alone") {
  const CrossingProgress above = search([](double x) { return x + 1; });
  CHECK(above.state == CrossingState::above);
  CHECK(above.visited.size() == 2);
  CHECK(search([](double x) { return -x - 1; }).state == CrossingState::below);
}

TEST_CASE("crossing: what is not recorded leaves the search open, what has no value ends it") {
  std::map<double, CurvePoint> points = {{0, point(0, {-1.0})}, {1, point(1, {1.0})}};
  const auto at = [&](double x) {
    const auto found = points.find(x);
    return found == points.end() ? nullptr : &found->second;
  };
  CHECK(bisect(0, 1, halved, at).state == CrossingState::open);
  CHECK(bisect(0, 1, halved, at).visited.back() == 0.5);
  points[0.5] = point(0.5, {1.0, -3.0});
  points[0.5].is_complete = false;
  CHECK(bisect(0, 1, halved, at).visited.size() == 3);
  points[0.5] = point(0.5, {std::nullopt, -3.0});  // half of the seeds are too few
  CHECK(bisect(0, 1, halved, at).state == CrossingState::no_value);
  points[0.5] = point(0.5, {std::nullopt, -3.0, -1.0});
  CHECK(bisect(0, 1, halved, at).visited.back() == 0.75);
  CHECK(curve_mean(points[0.5]) == -2.0);
}

TEST_CASE("crossing: straight lines without spread cross at a point") {
  const std::vector<CurvePoint> curve = {point(0, {-1.0, -1.0}), point(0.5, {-0.5, -0.5}),
                                         point(1, {1.5, 1.5})};
  const CrossingEstimate estimate = estimate_crossing(curve, 1);
  CHECK(estimate.x == doctest::Approx(0.625).epsilon(1e-12));
  CHECK(estimate.low.value() == doctest::Approx(0.625).epsilon(1e-12));
  CHECK(estimate.high.value() == doctest::Approx(0.625).epsilon(1e-12));
  CHECK(sign_changes(curve) == 1);
}

TEST_CASE("crossing: the interval by hand, of three seeds with parallel lines") {
  // Means 2x − 1 and a standard deviation of 0.1 everywhere: t₂(0.975) · 0.1 / √3 / 2 to each side of 1/2.
  std::vector<CurvePoint> curve;
  for (const double x : {0.0, 0.4, 0.6, 1.0})
    curve.push_back(point(x, {2 * x - 1.1, 2 * x - 1, 2 * x - 0.9}));
  const double half = 4.302652729749464 * 0.1 / std::sqrt(3.0) / 2;
  const CrossingEstimate estimate = estimate_crossing(curve, 1);
  CHECK(estimate.x == doctest::Approx(0.5));
  CHECK(estimate.low.value() == doctest::Approx(0.5 - half));  // beyond the bracket
  CHECK(estimate.high.value() == doctest::Approx(0.5 + half));
}

TEST_CASE("crossing: an interval that reaches the end of the curve is open there, one seed has none") {
  const std::vector<CurvePoint> noisy = {point(0, {-3.0, 1.0, -1.0}), point(1, {9.0, 10.0, 11.0})};
  const CrossingEstimate estimate = estimate_crossing(noisy, 0);
  CHECK_FALSE(estimate.low.has_value());
  CHECK(estimate.high.has_value());
  const CrossingEstimate single = estimate_crossing({point(0, {-1.0}), point(1, {1.0})}, 0);
  CHECK(single.x == 0.5);
  CHECK_FALSE(single.low.has_value());
  CHECK_FALSE(single.high.has_value());
}

TEST_CASE("crossing: intervals cover the true crossing in 95 % of runs") {
  const double error = std::sqrt(0.05 * 0.95 / 4000);
  for (const int seeds : {3, 5, 10}) {
    CAPTURE(seeds);
    CHECK(std::abs(misses(seeds, 0) - 0.05) < 4 * error);
  }
  CHECK(misses(10, 0.1) > 0.05 + 4 * error);  // the check can fail
}

}  // namespace moelab::crossing_test
