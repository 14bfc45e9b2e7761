#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "analysis/stats/intervals.h"
#include "sim/base/error.h"

namespace moelab::significance_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// significance.py prints ten digits.
constexpr double kPrinted = 1e-9;

bool is_near(double value, double reference) {
  return std::abs(value - reference) < kPrinted;
}

bool are_near(const std::vector<double>& values, const std::vector<double>& references) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!is_near(values[i], references.at(i))) return false;
  return values.size() == references.size();
}

}  // namespace

TEST_CASE("p values against a range are those of SciPy") {
  const std::vector<double> values = {-0.31, -0.12, -0.45, 0.08, -0.27};
  const auto check = [&](double low, double high, double inside, double outside) {
    const RangePValues p = range_p_values(values, {low, high});
    CHECK(is_near(p.inside, inside));
    CHECK(is_near(p.outside, outside));
  };
  check(-kInfinity, 0, 0.07697597736, 1);
  check(0, kInfinity, 1, 0.07697597736);
  check(-0.1, 0.1, 1, 0.275669724);
  check(-0.6, 0.3, 0.01293447756, 1);
}

TEST_CASE("p values and intervals decide alike") {
  const std::vector<double> values = {-0.31, -0.12, -0.45, 0.08, -0.27};
  const Interval interval = *mean_estimate(values).interval;
  // The p value is 0.05 for a range that ends where the interval ends.
  CHECK(is_near(range_p_values(values, {-kInfinity, interval.high}).inside, 0.05));
  CHECK(is_near(range_p_values(values, {interval.high, kInfinity}).outside, 0.05));
  CHECK(range_p_values(values, {interval.low - 1e-3, interval.high + 1e-3}).inside < 0.05);
  CHECK(range_p_values(values, {interval.low + 1e-3, interval.high + 1e-3}).inside > 0.05);
}

TEST_CASE("values without spread are certain") {
  const std::vector<double> equal = {-0.5, -0.5, -0.5};
  CHECK(range_p_values(equal, {-kInfinity, 0}).inside == 0);
  CHECK(range_p_values(equal, {-kInfinity, 0}).outside == 1);
  CHECK(range_p_values(equal, {0, kInfinity}).outside == 0);
  CHECK(range_p_values(equal, {-kInfinity, -0.5}).inside == 1);
  CHECK_THROWS_AS(range_p_values(std::vector<double>{1}, {0, 1}), InvalidOption);
}

TEST_CASE("the sign test's p values are those of SciPy") {
  CHECK(is_near(sign_p_value(6, 6), 0.03125));
  CHECK(is_near(sign_p_value(5, 5), 0.0625));
  CHECK(is_near(sign_p_value(8, 10), 0.109375));
  CHECK(sign_p_value(2, 10) == 1);
  CHECK(sign_p_value(5, 10) == 1);
  CHECK(sign_p_value(0, 0) == 1);
  CHECK(sign_p_value(kLeastDecidablePairs, kLeastDecidablePairs) < 0.05);
  CHECK(sign_p_value(kLeastDecidablePairs - 1, kLeastDecidablePairs - 1) > 0.05);
  CHECK_THROWS_AS(sign_p_value(3, 2), InvalidOption);
}

TEST_CASE("the least number of seeds at which a mean is told from an edge") {
  const auto seeds = [](double mean, double deviation, double edge) {
    return least_count(
        3, [=](int count) { return student_interval(mean, deviation * deviation, count).high < edge; });
  };
  CHECK(seeds(-0.1, 0.5, 0) == 99);
  CHECK(seeds(0.02, 0.2, 0.05) == 174);
  CHECK(seeds(0.02, 0.2, 0) == std::nullopt);
  CHECK(least_count(7, [](int) { return true; }) == 7);
}

TEST_CASE("corrections for several tests are those of SciPy, in the order given") {
  const std::array<double, 6> p_values = {0.01, 0.04, 0.03, 0.005, 0.5, 0.04};
  CHECK(are_near(holm(p_values), {0.05, 0.12, 0.12, 0.03, 0.5, 0.12}));
  CHECK(are_near(benjamini_hochberg(p_values), {0.03, 0.048, 0.048, 0.03, 0.5, 0.048}));
  CHECK(holm({}).empty());
  CHECK(benjamini_hochberg(std::array<double, 1>{0.2}).front() == 0.2);
  CHECK(holm(std::array<double, 2>{0.7, 0.8}) == std::vector<double>{1, 1});
}

}  // namespace moelab::significance_test
