#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "analysis/stats/result_table.h"
#include "sim/base/error.h"

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
