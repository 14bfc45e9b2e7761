#include "app/report/claim_results.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

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
  CHECK(text.ends_with("\n1 inconclusive (1 would be decided by 14 more seeds)\n"));
  claim.shape.reset();
  claim.text = claim.statement;
  CHECK(statement_text(claim).empty());
}

TEST_CASE("an explanation says what was compared, by which rule, and why each point has its verdict") {
  ClaimResult claim;
  claim.id = "c";
  claim.origin = Origin::paper;
  claim.source = "Fig. 3";
  claim.text = "“It is better.”";
  claim.statement = "a loss < b loss";
  claim.regime = "n >= 10";
  claim.quote = "for ten samples or more";
  claim.verdict = Verdict::refuted;
  claim.points.resize(3);
  ClaimPoint &outside = claim.points[0], &wide = claim.points[1], &refuted = claim.points[2];
  outside.verdict = Verdict::outside;
  for (ClaimPoint* point : {&wide, &refuted}) {
    point->logarithmic = true;
    point->pairs = 5;
    point->claimed = Interval{-std::numeric_limits<double>::infinity(), 0};
    point->negligible = Interval{-std::log1p(0.1), std::log1p(0.1)};
    point->p_values = PointPValues{0.3, 0.004};
  }
  outside.logarithmic = true;
  wide.difference = MeanEstimate{0, 5, Interval{-0.5, 0.5}};
  wide.seeds_to_decide = 40;
  refuted.verdict = Verdict::refuted;
  refuted.level = 0.975;
  refuted.difference = MeanEstimate{std::log(2), 5, Interval{std::log(1.5), std::log(3)}};
  const std::string text = explanation(claim);
  for (const char* part :
       {"c: refuted\n", "(the paper, Fig. 3): “It is better.”", "What was tested: a loss < b loss",
        "Where the paper claims it: n >= 10", "The paper's words: “for ten samples or more”",
        "The claim holds where the ratio is below 1.",
        "A ratio between 0.9091 and 1.1 is too small to matter.",
        "there are 2 points. So refuting uses the wider 97.5 % interval",
        "the paper's statement does not cover this point",
        "reaches both where the claim holds and where it fails", "About 40 seeds would decide it",
        "Ratio 2 [1.5, 3] (97.5 % interval).", "the 97.5 % interval lies wholly where the claim fails",
        "Refuted, because one point is refuted"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part, " in ", text);
}

TEST_CASE("an explanation of a monotone trend counts the ends, and one of a rate speaks of slopes") {
  ClaimResult trend;
  trend.id = "c";
  trend.verdict = Verdict::reproduced;
  trend.points.resize(2);
  trend.points[0].is_step = true;
  trend.points[1].verdict = Verdict::reproduced;
  CHECK(explanation(trend).find("Reproduced, because the only judged point is reproduced. The last value "
                                "against the first decides") != std::string::npos);
  ClaimResult rate = trend;
  rate.is_rate = true;
  CHECK(explanation(rate).find("Each repetition gives one slope") != std::string::npos);
  rate.points.clear();
  CHECK(explanation(rate).find("There is no point to judge.") != std::string::npos);
}

TEST_CASE("the last line of claims counts verdicts, and says how many seeds more would decide") {
  std::vector<ClaimResult> claims(4);
  claims[0].verdict = Verdict::reproduced;
  claims[1].verdict = Verdict::refuted;
  CHECK(claims_count_text(claims) == "1 reproduced, 1 refuted, 2 inconclusive");
  claims[2].points.resize(1);
  claims[2].points[0].pairs = 5;
  claims[2].seeds_to_decide = 13;
  CHECK(claims_count_text(claims) ==
        "1 reproduced, 1 refuted, 2 inconclusive (1 would be decided by 8 more seeds)");
  claims[3] = claims[2];
  claims[3].seeds_to_decide = 6;
  CHECK(claims_count_text(claims).ends_with("(1 would be decided by 1 more seed, 2 by 8)"));
}

}  // namespace moelab::claim_results_test
