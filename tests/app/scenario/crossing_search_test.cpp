#include <doctest/doctest.h>

#include <cmath>

#include "app/scenario/overrides.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/scenario/refused.h"

namespace moelab::crossing_search_test {
namespace {

Json searched(const Json& changes = Json::object()) {
  Json scenario = tiny();
  Json crossing = {
      {"metric", "test_nmse_soft"}, {"level", 0.5}, {"arm", "learned"}, {"low", 20}, {"high", 40}};
  crossing.update(changes);
  for (const auto& [key, value] : changes.items())
    if (value.is_null()) crossing.erase(key);
  scenario["sweep"] = {{"data.train_samples", {{"crossing", crossing}}}, {"model.experts", {2, 3}}};
  return scenario;
}

void refused(const Json& changes, const std::string& field, const std::string& message) {
  const std::string place = "sweep.data.train_samples.crossing";
  check_refused(searched(changes), "", {}, field.empty() ? place : place + "." + field, message);
}

CrossingSearch search_of(double low, double high, bool is_log, bool is_whole) {
  CrossingSearch search;
  search.low = low;
  search.high = high;
  search.is_log = is_log;
  search.is_whole = is_whole;
  search.resolution = 0.04;
  return search;
}

}  // namespace

TEST_CASE("crossing search: both ends are cells of every arm, and vary fastest") {
  const Scenario scenario = expand_scenario(searched(), "", {});
  CHECK(scenario.sweep_paths == std::vector<std::string>{"model.experts", "data.train_samples"});
  REQUIRE(scenario.cells.size() == 2 * 2 * 2 * 2);
  CHECK(scenario.cells[2].point[1].second == SweepValue(40));
  Json grid = tiny();
  grid["sweep"] = {{"model.experts", {2, 3}}, {"data.train_samples", {20, 40}}};
  const Scenario ordinary = expand_scenario(grid, "", {});
  for (std::size_t i = 0; i < ordinary.cells.size(); ++i) CHECK(ordinary.cells[i].id == scenario.cells[i].id);
}

TEST_CASE("crossing search: placed points are those of an ordinary sweep, seed by seed") {
  Scenario scenario = expand_scenario(searched(), "", {});
  keep_placed(scenario, {{20, 27, 40}, {20, 40}, {20, 40}, {20, 30, 33, 40}});
  CHECK(scenario.cells.size() == 2 * (3 + 2 + 2 + 4));
  Json grid = tiny();
  grid["sweep"] = {{"model.experts", {3}}, {"data.train_samples", {33}}};
  const Scenario ordinary = expand_scenario(grid, "", {});
  CHECK(scenario.cells[18].id == ordinary.cells[2].id);
  CHECK(scenario.cells[18].arm == "frozen");
  CHECK_THROWS_AS(keep_placed(scenario, {{20, 40}}), std::invalid_argument);
}

TEST_CASE("crossing search: middles are near the middle, in few digits, and end where it is narrow enough") {
  const CrossingSearch linear = search_of(0.25, 3, false, false), log = search_of(1e-6, 1, true, false),
                       whole = search_of(64, 4096, true, true);
  CHECK(linear.middle(0.25, 3) == 1.6);
  CHECK(log.middle(1e-6, 1) == 0.001);
  CHECK(whole.middle(64, 4096) == 512);
  CHECK_FALSE(linear.middle(1, 1.1).has_value());
  CHECK_FALSE(whole.middle(100, 101).has_value());
  for (const CrossingSearch* search : {&linear, &log}) {
    CHECK(search->most_within(search->low, search->high) == 5);
    double low = search->low, high = search->high;
    while (const auto middle = search->middle(low, high)) {
      const double share =
          (search->scaled(*middle) - search->scaled(low)) / (search->scaled(high) - search->scaled(low));
      CHECK(std::abs(share - 0.5) <= 1.0 / 64 + 1e-12);
      (share > 0.5 ? low : high) = *middle;
    }
    CHECK(search->scaled(high) - search->scaled(low) <=
          0.04 * (search->scaled(search->high) - search->scaled(search->low)));
  }
  // Whole numbers end at neighbours.
  const CrossingSearch small = search_of(1, 9, false, true);
  CHECK(small.most_within(1, 9) == 3);
  CHECK(CrossingSearch::value(3).dump() == "3");
  CHECK(CrossingSearch::value(0.5).dump() == "0.5");
}

TEST_CASE("crossing search: what is refused") {
  refused({{"level", nullptr}}, "", "level (a number) or against");
  refused({{"against", "frozen"}}, "", "one of them");
  refused({{"level", nullptr}, {"against", "learned"}}, "against", "the arm itself");
  refused({{"level", nullptr}, {"against", "frozen"}, {"arm", nullptr}}, "", "needs arm");
  refused({{"level", nullptr}, {"against", "frosen"}}, "against", "did you mean 'frozen'");
  refused({{"arm", "leaned"}}, "arm", "did you mean 'learned'");
  refused({{"metric", "test_nmse_sofd"}}, "metric", "did you mean 'test_nmse_soft'");
  refused({{"metric", "silhouette"}}, "metric", "silhouette");
  refused({{"level", 0}}, "level", "never crosses");
  refused({{"high", 20}}, "high", "more than low");
  refused({{"low", -4}}, "low", "at least 1");
  refused({{"low", 0}, {"scale", "log"}}, "low", "log scale");
  refused({{"low", 20.5}}, "low", "whole number");
  refused({{"resolution", 0}}, "resolution", "0.0001");
  refused({{"metrics", "x"}}, "metrics", "unknown key");
  Json two = searched();
  two["sweep"]["model.experts"] = {
      {"crossing", {{"metric", "test_nmse_soft"}, {"level", 1}, {"low", 2}, {"high", 4}}}};
  check_refused(two, "", {}, "sweep.model.experts", "needs one searched path");
  Json name = searched();
  name["sweep"]["train.optimizer"] = name["sweep"]["data.train_samples"];
  name["sweep"].erase("data.train_samples");
  check_refused(name, "", {}, "sweep.train.optimizer.crossing", "not a number");
  Json figure = searched();
  figure["figures"] = Json::parse(R"([{"id": "f", "x": "model.experts", "y": "test_nmse_soft"}])");
  check_refused(figure, "", {}, "figures[0].x", "kind crossing");
  figure["figures"][0] = {{"id", "f"}, {"kind", "crossing"}, {"x", "data.train_samples"}};
  check_refused(figure, "", {}, "figures[0].x", "another path");
  // The searched path begins the name of x, and is not x.
  Json beginning = tiny();
  beginning["model"]["gating"] = {{"train", {{"kind", "topk"}, {"k", 1}}}};
  beginning["sweep"] = {
      {"model.gating.train.kind", {"topk", "sinkhorn"}},
      {"model.gating.train.k",
       {{"crossing",
         {{"metric", "test_nmse_soft"}, {"level", 0.5}, {"arm", "learned"}, {"low", 1}, {"high", 3}}}}}};
  beginning["figures"] =
      Json::parse(R"([{"id": "f", "x": "model.gating.train.kind", "y": "test_nmse_soft"}])");
  check_refused(beginning, "", {}, "figures[0].x", "the search along model.gating.train.k places");
  Json claim = searched();
  claim["claims"] =
      Json::parse(R"([{"id": "c", "op": "<", "left": {"arm": "learned", "metric": "test_nmse_soft",
    "where": {"data.train_samples": 99}}, "right": {"arm": "frozen", "metric": "test_nmse_soft"}}])");
  check_refused(claim, "", {}, "claims[0].left.where.data.train_samples",
                "got 99, needs a value between the ends of the crossing: 20 to 40");
  claim["claims"][0]["left"]["where"]["data.train_samples"] = 30;
  CHECK_NOTHROW(expand_scenario(claim, "", {}));
  Json none = tiny();
  none["figures"] = figure["figures"];
  check_refused(none, "", {}, "figures[0].kind", "searches a crossing");
}

}  // namespace moelab::crossing_search_test
