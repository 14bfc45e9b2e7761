#include "app/report/claim_results.h"

#include <doctest/doctest.h>

namespace moelab::claim_results_test {

TEST_CASE("claims as people read them: places, sides with factors, reported numbers") {
  ClaimPoint point;
  point.left_at = point.right_at = {{"data.n", 20}, {"model.e", 2}};
  CHECK(place_text(point) == "data.n = 20, model.e = 2");
  point.right_at[1].second = 4;
  CHECK(place_text(point) == "data.n = 20, model.e = 2 against model.e = 4");
  point.left_at = {{"data.n", 20}};
  point.right_at = {{"data.n", 10}};
  CHECK(place_text(point) == "data.n = 20 against 10");
  const MeanEstimate side = {0.25, 3, Interval{0.2, 0.3}};
  CHECK(side_text(side, 1) == "0.25 ± 0.05");
  CHECK(side_text(side, 0.5) == "0.5 × 0.25 ± 0.05");
  CHECK(side_text(MeanEstimate{0.25, 3, {}}, 1) == "0.25");
  CHECK(side_text({}, 0.5) == "-");
  CHECK(reported_text(Json()).empty());
  CHECK(reported_text("tends to 1") == "tends to 1");
  CHECK(reported_text(1.025) == "1.025");
  CHECK(reported_text(Json::parse(R"({"learned": 8.8, "shuffled": "far above"})")) ==
        "learned 8.8, shuffled far above");
}

TEST_CASE("claims as programs read them: where sides agree, and where each is") {
  ClaimResult claim;
  claim.id = "c";
  claim.points.resize(1);
  ClaimPoint& point = claim.points.front();
  point.left_at = {{"data.n", 20}, {"model.e", 2}};
  point.right_at = {{"data.n", 20}, {"model.e", 4}};
  const Json apart = to_json(claim).at("points")[0];
  CHECK(apart.at("at").dump() == R"({"data.n":20})");
  CHECK(apart.at("left_at").at("model.e") == 2);
  CHECK(apart.at("right_at").at("model.e") == 4);
  CHECK(apart.at("left").is_null());
  point.right_at = point.left_at;
  point.left = MeanEstimate{0.25, 3, Interval{0.2, 0.3}};
  const Json together = to_json(claim).at("points")[0];
  CHECK_FALSE(together.contains("left_at"));
  CHECK(together.at("left") == 0.25);
  CHECK(together.at("left_interval") == Json::array({0.2, 0.3}));
  CHECK(to_json(claim).at("reported").is_null());
  claim.reported = R"({"learned":8.8})";
  CHECK(to_json(claim).at("reported").at("learned") == 8.8);
}

}  // namespace moelab::claim_results_test
