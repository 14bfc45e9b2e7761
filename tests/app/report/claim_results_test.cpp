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

TEST_CASE("claims with censored values, trends and whose they are, for people and programs") {
  const Median open = {4000, true, 6, 10}, known = {250, false, 0, 10};
  CHECK(median_text(open, 1) == "median above 4000 (6 of 10 censored)");
  CHECK(median_text(known, 0.5) == "0.5 × median 250");
  ClaimResult claim;
  claim.id = "c";
  claim.origin = Origin::paper;
  claim.text = "“It falls.”";
  claim.statement = "a steps decreases along n";
  claim.shape = TrendShape::monotone;
  claim.seeds_to_decide = 14;
  claim.points.resize(1);
  ClaimPoint& point = claim.points.front();
  point.signs = SignCounts{3, 1, 4, 2};
  point.left_median = open;
  point.right_median = known;
  point.p_values = PointPValues{0.3, 1};
  point.left_step = ClaimStep{ClaimStep::At::recorded, 20};
  point.right_step = ClaimStep{ClaimStep::At::recorded, 10};
  CHECK(place_text(point) == "step 20 against 10");
  CHECK(left_text(point) == median_text(open, 1));
  CHECK(statement_text(claim) == "a steps decreases along n (monotone: the ends, and no step the other way)");
  const Json json = to_json(claim);
  CHECK(json.at("origin") == "paper");
  CHECK(json.at("shape") == "monotone");
  CHECK(json.at("seeds_to_decide") == 14);
  CHECK(json.at("p").is_null());
  const Json told = json.at("points")[0];
  CHECK(told.at("test") == "sign");
  CHECK(told.at("signs").at("ties") == 4);
  CHECK(told.at("left").is_null());
  CHECK(told.at("right") == 250);
  CHECK(told.at("p") == 0.3);
  CHECK(told.at("left_step") == 20);
  const std::string text = claims_text({claim});
  CHECK(text.find("c: inconclusive (about 14 seeds would decide)\n  the paper: “It falls.”") == 0);
  claim.shape.reset();
  claim.text = claim.statement;
  CHECK(statement_text(claim).empty());
}

}  // namespace moelab::claim_results_test
