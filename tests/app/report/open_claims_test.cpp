#include <doctest/doctest.h>

#include "analysis/stats/intervals.h"
#include "app/report/claim_results.h"
#include "app/scenario/claim_reader.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::open_claims_test {
namespace {

Scenario scenario_with_claims() {
  Scenario scenario = small_scenario();
  scenario.claims = read_claims(Json::parse(R"([
    {"id": "open", "left": {"arm": "learned", "metric": "a_metric"}, "op": "<",
     "right": {"arm": "frozen", "metric": "a_metric"}, "at": "each"},
    {"id": "rate", "op": "rate", "arm": "learned", "metric": "a_metric", "along": "data.train_samples",
     "exponent": -0.5}])"));
  return scenario;
}

/// Results of both claims, inconclusive; the first at both points with so many pairs.
std::vector<ClaimResult> results(int pairs) {
  std::vector<ClaimResult> claims(2);
  for (const int samples : {10, 20}) {
    ClaimPoint point;
    point.left_at = point.right_at = {{"data.train_samples", samples}};
    point.pairs = pairs;
    claims[0].points.push_back(point);
  }
  claims[1].points.resize(1);
  return claims;
}

}  // namespace

TEST_CASE("looks: six pairs first, then a quarter more") {
  CHECK(next_look(2) == kLeastSequentialPairs);
  CHECK(next_look(6) == 8);
  CHECK(next_look(8) == 10);
  CHECK(next_look(100) == 125);
}

TEST_CASE("seeds are added to the arms and points of open claims alone") {
  const Scenario scenario = scenario_with_claims();
  std::vector<ClaimResult> claims = results(8);
  // Arms learned and frozen, each at 10 and 20 samples.
  const std::vector<int> seeds = {8, 8, 8, 8};
  CHECK(wanted_seeds(scenario, claims, seeds, 100) == std::vector<int>{10, 10, 10, 10});
  CHECK(wanted_seeds(scenario, claims, seeds, 9) == std::vector<int>{9, 9, 9, 9});
  CHECK(wanted_seeds(scenario, claims, seeds, 8) == seeds);
  claims[0].points[0].verdict = Verdict::reproduced;
  CHECK(wanted_seeds(scenario, claims, seeds, 100) == std::vector<int>{8, 10, 8, 10});
  claims[0].points[1].is_complete = false;  // a cell diverged: no seed helps
  CHECK(wanted_seeds(scenario, claims, seeds, 100) == seeds);
  claims = results(8);
  claims[0].verdict = Verdict::refuted;
  CHECK(wanted_seeds(scenario, claims, seeds, 100) == seeds);
}

TEST_CASE("the most seeds are those of all that claims with sequences read") {
  Scenario scenario = scenario_with_claims();
  CHECK(most_wanted_seeds(scenario, {1, 1, 1, 1}, 30) == std::vector<int>{30, 30, 30, 30});
  ClaimPlaces& places = std::get<Comparison>(scenario.claims[0].statement).at;
  places = {ClaimPlaces::Which::listed, {SweepValue(20)}};
  CHECK(most_wanted_seeds(scenario, {1, 1, 1, 1}, 30) == std::vector<int>{1, 30, 1, 30});
  scenario.claims.erase(scenario.claims.begin());  // a rate has no sequence
  CHECK(most_wanted_seeds(scenario, {1, 2, 1, 2}, 30) == std::vector<int>{1, 2, 1, 2});
}

TEST_CASE("a scenario keeps the seeds that were decided for each arm and point") {
  Scenario scenario = small_scenario();
  keep_decided(scenario, DecidedSeeds{1, {2, 1, 1, 2}});
  std::vector<std::string> ids;
  for (const Cell& cell : scenario.cells) ids.push_back(cell.id);
  CHECK(ids == std::vector<std::string>{"learned10s0", "learned10s1", "learned20s0", "frozen10s0",
                                        "frozen20s0", "frozen20s1"});
  CHECK_THROWS_AS(keep_decided(scenario, DecidedSeeds{1, {2, 1}}), std::invalid_argument);
}

}  // namespace moelab::open_claims_test
