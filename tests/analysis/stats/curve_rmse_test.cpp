#include <doctest/doctest.h>

#include <cmath>

#include "analysis/stats/result_table.h"

namespace moelab::curve_rmse_test {

TEST_CASE("the distance of curves by hand, and none where they do not match") {
  const std::vector<TraceEntry> left = {{0, {{"load", 1}}}, {10, {{"load", 2}, {"loss", 1}}}};
  const std::vector<TraceEntry> right = {{0, {{"load", 1}}}, {10, {{"load", 5}, {"loss", 1}}}};
  CHECK(curve_rmse(left, right, "load") == std::sqrt(4.5));
  CHECK(curve_rmse(left, left, "load") == 0.0);
  CHECK_FALSE(curve_rmse(left, right, "loss"));  // not recorded at step 0
  CHECK_FALSE(curve_rmse(left, {left.front()}, "load"));
  CHECK_FALSE(curve_rmse({}, {}, "load"));
  const std::vector<TraceEntry> other_steps = {left[0], {20, left[1].metrics}};
  CHECK_FALSE(curve_rmse(left, other_steps, "load"));
}

}  // namespace moelab::curve_rmse_test
