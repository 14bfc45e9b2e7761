#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "analysis/stats/intervals.h"
#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::sequences_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Runs of a law whose truth is 0, looked at after each value from the least pairs on.
struct Misses {
  double of_means = 0, of_medians = 0;
};
template <class Draw>
Misses misses(const Draw& draw, int runs, int most) {
  Engine engine = Seeds{11, 0}.stream(Purpose::problem);
  Misses share;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> values;
    double sum = 0, squares = 0;
    int above = 0;
    bool missed_mean = false, missed_median = false;
    for (int n = 1; n <= most; ++n) {
      values.push_back(draw(engine));
      sum += values.back();
      squares += values.back() * values.back();
      above += values.back() > 0 ? 1 : 0;
      if (n < kLeastSequentialPairs) continue;
      const double mean = sum / n, variance = (squares - n * mean * mean) / (n - 1);
      missed_mean |= t_mixture_p_value(mean, variance, n, 0) <= 0.05;
      missed_median |= sign_sequence_p_value(above, n) <= 0.05;
    }
    share.of_means += missed_mean ? 1.0 / runs : 0;
    share.of_medians += missed_median ? 1.0 / runs : 0;
  }
  return share;
}

}  // namespace

TEST_CASE("the t-mixture interval holds what its p value does not exclude, to the edge") {
  for (const int n : {6, 10, 50, 1000}) {
    for (const double level : {0.95, 0.99}) {
      const Interval interval = t_mixture_interval(1.5, 4, n, level);
      CAPTURE(n);
      REQUIRE(std::isfinite(interval.low));
      CHECK(interval.low + interval.high == doctest::Approx(3));
      CHECK(t_mixture_p_value(1.5, 4, n, interval.high) == doctest::Approx(1 - level));
      CHECK(t_mixture_p_value(1.5, 4, n, interval.low - 0.01) < 1 - level);
    }
  }
  CHECK(t_mixture_p_value(1, 1, 10, 1) == 1);
  CHECK(t_mixture_interval(0, 1, 2).high == kInfinity);
  CHECK(t_mixture_interval(2, 0, 6).low == 2);
  CHECK_THROWS_AS(t_mixture_interval(2, 0, 1), InvalidOption);
}

TEST_CASE("the t-mixture ratio is the likelihood of t under the mixture over that under the null") {
  // By quadrature: f(t | δ) of the noncentral t of t = √n m/s, integrated over δ ~ N(0, 1); n = 8, t = 2.5.
  const int n = 8;
  const double t = 2.5, nu = n - 1;
  const auto density = [&](double shift) {  // up to what does not depend on the shift
    double sum = 0;
    const double step = 0.002;  // over the scale of s, chi distributed
    for (double u = step / 2; u < 8; u += step)
      sum += step * std::pow(u, nu) * std::exp(-0.5 * nu * u * u) *
             std::exp(-0.5 * (t * u - shift) * (t * u - shift));
    return sum;
  };
  double mixed = 0;
  const double step = 0.02;
  for (double delta = -6; delta < 6; delta += step)
    mixed += step * std::exp(-0.5 * delta * delta) / std::sqrt(2 * 3.14159265358979) *
             density(std::sqrt(static_cast<double>(n)) * delta);
  CHECK(1 / t_mixture_p_value(t, n, n, 0) == doctest::Approx(mixed / density(0)).epsilon(1e-4));
}

TEST_CASE(
    "sign sequences: six equal signs decide nothing, eight do, and the interval is one of sorted values") {
  CHECK(sign_sequence_p_value(6, 6) > 0.05);
  CHECK(sign_sequence_p_value(7, 7) < 0.05);
  CHECK(sign_sequence_p_value(0, 7) == sign_sequence_p_value(7, 7));
  CHECK(sign_sequence_p_value(5, 10) == 1);
  std::vector<double> values;
  for (int i = 6; i > 0; --i) values.push_back(i);
  CHECK(sign_sequence_interval(values).low == -kInfinity);
  values.push_back(7);
  const Interval interval = sign_sequence_interval(values);
  CHECK(interval.low == 1);
  CHECK(interval.high == 7);
  for (int i = 8; i <= 100; ++i) values.push_back(i);
  const Interval narrow = sign_sequence_interval(values);
  // Below the low end as many values are excluded as the p value says.
  CHECK(sign_sequence_p_value(100 - static_cast<int>(narrow.low), 100) > 0.05);
  CHECK(sign_sequence_p_value(101 - static_cast<int>(narrow.low), 100) <= 0.05);
  CHECK(narrow.low + narrow.high == 101);
  CHECK_THROWS_AS(sign_sequence_p_value(3, 2), InvalidOption);
}

TEST_CASE("a sequence that is looked at after every value misses the truth in one run of twenty at most") {
  constexpr int kRuns = 1000, kMost = 300;
  const double limit = 0.05 + 2 * std::sqrt(0.05 * 0.95 / kRuns);
  const Misses normal = misses([](Engine& engine) { return draw_normal(engine); }, kRuns, kMost);
  CHECK(normal.of_means <= limit);
  CHECK(normal.of_medians <= limit);
  // Skewed, heavy-tailed and two-humped laws of median 0: of the median alone.
  const auto skewed = [](Engine& engine) { return std::exp(draw_normal(engine)) - 1; };
  const auto heavy = [](Engine& engine) { return draw_normal(engine) / draw_normal(engine); };
  const auto humps = [](Engine& engine) {
    return (draw_uniform(engine) < 0.5 ? -3 : 3) + 0.5 * draw_normal(engine);
  };
  CHECK(misses(skewed, kRuns, kMost).of_medians <= limit);
  CHECK(misses(heavy, kRuns, kMost).of_medians <= limit);
  CHECK(misses(humps, kRuns, kMost).of_medians <= limit);
  // The fixed design's interval, looked at as often, is not valid.
  const auto t_test_misses = [&] {
    Engine engine = Seeds{11, 0}.stream(Purpose::problem);
    int missed = 0;
    for (int run = 0; run < 200; ++run) {
      double sum = 0, squares = 0;
      bool miss = false;
      for (int n = 1; n <= kMost; ++n) {
        const double value = draw_normal(engine);
        sum += value;
        squares += value * value;
        if (n < kLeastSequentialPairs) continue;
        const double mean = sum / n;
        const Interval fixed = student_interval(mean, (squares - n * mean * mean) / (n - 1), n);
        miss |= fixed.low > 0 || fixed.high < 0;
      }
      missed += miss ? 1 : 0;
    }
    return missed / 200.0;
  };
  CHECK(t_test_misses() > 0.2);
}

}  // namespace moelab::sequences_test
