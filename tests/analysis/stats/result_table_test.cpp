#include "analysis/stats/result_table.h"

#include <doctest/doctest.h>

#include <cmath>

#include "app/scenario/overrides.h"

namespace moelab::sweep_value_test {

TEST_CASE("swept values are equal whatever way they are written, and keep the way") {
  const SweepValue whole = read_sweep_value(1), real = read_sweep_value(1.0);
  CHECK(whole == real);
  CHECK(whole.text() == "1");
  CHECK(real.text() == "1.0");
  CHECK(real.number() == 1);
  CHECK(whole == SweepValue(1));
  CHECK(real == SweepValue(1.0));
  CHECK_FALSE(whole == SweepValue(1.5));
  CHECK(read_sweep_value(0.1) == SweepValue(0.1));
  CHECK(read_sweep_value(1e300) == SweepValue(1e300));
  CHECK(read_sweep_value("soft") == SweepValue("soft"));
  CHECK(read_sweep_value("a \"b\"") == SweepValue("a \"b\""));
  CHECK_FALSE(read_sweep_value("1").number());
  CHECK_FALSE(read_sweep_value("1") == whole);
  const Json gating = Json::parse(R"({"k": 2.0, "kind": "topk"})");
  CHECK(read_sweep_value(gating) == read_sweep_value(Json::parse(R"({"kind": "topk", "k": 2})")));
  for (const Json& value : {Json(1), Json(1.0), Json("soft"), Json(true), Json(), gating}) {
    CHECK(to_json(read_sweep_value(value)).dump() == value.dump());
  }
  CHECK(value_text(read_sweep_value("soft")) == "soft");
  CHECK(value_text(read_sweep_value(0.5)) == "0.5");
}

TEST_CASE("a point has the coordinates of another") {
  const SweepPoint point = {{"data.n", 20}, {"model.gating.train", "soft"}};
  CHECK(has_coordinates(point, {}));
  CHECK(has_coordinates(point, {{"data.n", 20.0}}));
  CHECK_FALSE(has_coordinates(point, {{"data.n", 10}}));
  CHECK_FALSE(has_coordinates(point, {{"data.m", 20}}));
  CHECK(point_text(point) == "data.n = 20, model.gating.train = \"soft\"");
  CHECK(point_text({}).empty());
  CHECK(read_point(point_json(point)) == point);
}

}  // namespace moelab::sweep_value_test

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
