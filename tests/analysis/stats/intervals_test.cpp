#include "analysis/stats/intervals.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "analysis/stats/result_table.h"
#include "sim/base/error.h"

namespace moelab::intervals_test {
namespace {

/// Tables print quantiles of Student's t to four decimals.
constexpr double kTableRounding = 1e-4;
/// Reference values are stored to ten digits.
constexpr double kPrinted = 1e-9;

}  // namespace

TEST_CASE("Student-t interval by hand") {
  // 1, 2, 3: mean 2, s = 1, t_2(0.975) = 4.3027.
  const std::vector<double> values = {1, 2, 3};
  const MeanEstimate estimate = mean_estimate(values);
  CHECK(estimate.mean == doctest::Approx(2));
  CHECK(estimate.count == 3);
  REQUIRE(estimate.interval);
  CHECK(std::abs((estimate.interval->high - 2) * std::sqrt(3.0) - 4.3027) < kTableRounding);
  CHECK(std::abs((2 - estimate.interval->low) * std::sqrt(3.0) - 4.3027) < kTableRounding);
  // t_2(0.995) = 9.9248.
  CHECK(std::abs((mean_estimate(values, 0.99).interval->high - 2) * std::sqrt(3.0) - 9.9248) <
        kTableRounding);
}

TEST_CASE("one value has no interval, equal values an empty one, none is refused") {
  const std::vector<double> one = {0.1}, equal = {0.1, 0.1, 0.1};
  CHECK_FALSE(mean_estimate(one).interval.has_value());
  CHECK(mean_estimate(equal).mean == 0.1);
  CHECK(mean_estimate(equal).interval->low == mean_estimate(equal).interval->high);
  CHECK_THROWS_AS(mean_estimate({}), InvalidOption);
  CHECK_THROWS_AS(paired_differences(one, equal), InvalidOption);
}

TEST_CASE("binomial intervals are those of SciPy") {
  // scipy.stats.binomtest(hits, trials).proportion_ci(0.95, "exact")
  const auto check = [](int hits, int trials, double low, double high) {
    const Interval interval = binomial_interval(hits, trials);
    CHECK(std::abs(interval.low - low) < kPrinted);
    CHECK(std::abs(interval.high - high) < kPrinted);
  };
  check(0, 20, 0, 0.168433471);
  check(3, 40, 0.01574217985, 0.2038647487);
  check(20, 20, 0.831566529, 1);
  check(700, 1000, 0.6705383213, 0.7282788879);
  CHECK_THROWS_AS(binomial_interval(3, 2), InvalidOption);
  CHECK_THROWS_AS(binomial_interval(0, 0), InvalidOption);
}

TEST_CASE("bands leave out seeds without a value; of positive metrics they are those of logarithms") {
  const BandPoint real = band_point(640, {0.1, std::nullopt, 2.0, std::nan("")}, false, false);
  CHECK(real.mean.value() == doctest::Approx(1.05));
  CHECK(real.low.value() < 0);
  CHECK(real.seeds.size() == 4);
  CHECK_FALSE(real.seeds[3].has_value());
  const BandPoint positive = band_point(640, {0.1, std::nullopt, 2.0}, true, false);
  const MeanEstimate logarithms = mean_estimate(std::vector{std::log(0.1), std::log(2.0)});
  CHECK(positive.mean.value() == doctest::Approx(std::sqrt(0.2)));
  CHECK(positive.low.value() == doctest::Approx(std::exp(logarithms.interval->low)));
  CHECK(positive.high.value() == doctest::Approx(std::exp(logarithms.interval->high)));
  // A value that is not above 0 has no logarithm.
  CHECK(band_point(640, {0.0, 2.0}, true, false).mean.value() == 1);
  const BandPoint single = band_point(1, {0.5}, true, false);
  CHECK(single.mean.value() == doctest::Approx(0.5));
  CHECK_FALSE(single.low.has_value());
  CHECK_FALSE(band_point(1, {std::nullopt}, true, false).mean.has_value());
}

TEST_CASE("medians of censored values: bounds stand at the limit; the interval is one of order statistics") {
  // Bin(6, 1/2): P(0) = 1/64, so the least and the largest of six hold the median with 1 - 2/64.
  const auto exact = [](double value) { return Interval{value, value}; };
  const Interval censored = {100, std::numeric_limits<double>::infinity()};
  const BandPoint six = median_point(1, {exact(3), exact(1), exact(2), exact(5), exact(4), censored}, false);
  CHECK(six.mean == 3.5);
  CHECK_FALSE(six.is_open);
  CHECK(six.low == 1);
  CHECK(six.high == censored.high);  // the sixth is above 100, by how much is not known
  CHECK_FALSE(six.seeds[5].has_value());
  // Of nine the second and the eighth hold the median, so one censored value leaves the upper end known.
  std::vector<std::optional<Interval>> nine = {censored};
  for (int i = 1; i <= 8; ++i) nine.push_back(exact(i));
  CHECK(median_point(1, nine, false).high == 8);
  nine.back() = censored;
  CHECK(median_point(1, nine, false).low == 2);
  CHECK(median_point(1, nine, false).high == censored.high);
  // A value that was censored early may still be the largest.
  std::vector<std::optional<Interval>> early = {Interval{0.5, censored.high}};
  for (int i = 1; i <= 5; ++i) early.push_back(exact(i));
  CHECK(median_point(1, early, false).high == censored.high);
  const BandPoint five =
      median_point(1, {exact(3), std::nullopt, censored, censored, exact(1), censored}, false);
  CHECK(five.mean == 100);
  CHECK(five.is_open);
  CHECK_FALSE(five.low.has_value());
  CHECK_FALSE(median_point(1, {std::nullopt}, false).mean.has_value());
  // (1/2)^2000 is rounded to 0. A normal law has ranks of 1000 - 1.96 √500, from 1 on.
  std::vector<std::optional<Interval>> many;
  for (int i = 1; i <= 2000; ++i) many.push_back(exact(i));
  const BandPoint of_many = median_point(1, many, false);
  CHECK(std::abs(*of_many.low - 956.7) < 1.5);
  CHECK(*of_many.low + *of_many.high == 2001);
}

TEST_CASE("bands of a decided run are those of the sequences, and none where these exclude nothing yet") {
  std::vector<std::optional<double>> seeds;
  std::vector<std::optional<Interval>> observations;
  std::vector<double> values, logarithms;
  for (int i = 1; i <= 12; ++i) {
    const double value = 1 + .01 * i * i;
    seeds.emplace_back(value);
    observations.emplace_back(Interval{value, value});
    values.push_back(value);
    logarithms.push_back(std::log(value));
  }
  const double mean = mean_estimate(logarithms).mean;
  const Interval mixture = t_mixture_interval(mean, variance_of(logarithms, mean), 12);
  const BandPoint band = band_point(1, seeds, true, true);
  CHECK(band.low.value() == doctest::Approx(std::exp(mixture.low)));
  CHECK(band.high.value() == doctest::Approx(std::exp(mixture.high)));
  const Interval signs = sign_sequence_interval(values);
  const BandPoint median = median_point(1, observations, true);
  CHECK(median.low == signs.low);
  CHECK(median.high == signs.high);
  observations.assign(12, Interval{100, std::numeric_limits<double>::infinity()});
  for (std::size_t i = 0; i < 6; ++i) observations[i] = Interval{values[i], values[i]};
  CHECK(std::isinf(median_point(1, observations, true).high.value()));
  CHECK_FALSE(band_point(1, {1.0, 2.0}, true, true).low.has_value());
  CHECK_FALSE(median_point(1, {Interval{1, 1}, Interval{2, 2}}, true).low.has_value());
}

}  // namespace moelab::intervals_test

namespace moelab::observation_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("what a row tells of a metric: its value, that it is above the last step, or nothing") {
  ResultRow row;
  row.trace = {{0, {}}, {400, {}}};
  row.metrics = {{"steps_to_target", 100},
                 {"steps_to_target_censored", 0},
                 {"steps_to_target_censored.fast", 1},
                 {"steps_to_target_censored.slow", 0},
                 {"loss", std::numeric_limits<double>::quiet_NaN()}};
  const auto seen = [&](const std::string& metric) { return observed(row, row.metrics, metric); };
  CHECK(seen("steps_to_target")->low == 100);
  CHECK(is_exact(*seen("steps_to_target")));
  CHECK(seen("steps_to_target.fast")->low == 400);
  CHECK(seen("steps_to_target.fast")->high == kInfinity);
  CHECK_FALSE(seen("steps_to_target.slow").has_value());
  CHECK_FALSE(seen("loss").has_value());
  CHECK_FALSE(seen("accuracy").has_value());
}

TEST_CASE("medians of values of which some are right-censored") {
  const Interval late = {400, kInfinity};
  const auto median = [](const std::vector<Interval>& values) { return median_of(values); };
  CHECK(median({{3, 3}, {1, 1}, {2, 2}}).value == 2);
  CHECK(median({{3, 3}, {1, 1}}).value == 2);
  const Median known = median({{100, 100}, late, {200, 200}});
  CHECK(known.value == 200);
  CHECK_FALSE(known.is_open);
  CHECK(known.censored == 1);
  CHECK(known.count == 3);
  CHECK(median({{100, 100}, late, late}).is_open);
  CHECK(median({{100, 100}, late, late}).value == 400);
  CHECK(median({{100, 100}, late}).is_open);  // half of the way to what is not known
  CHECK(median({late, late}).is_open);
  CHECK_THROWS_AS(median({}), InvalidOption);
}

}  // namespace moelab::observation_test
