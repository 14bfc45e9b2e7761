#include <doctest/doctest.h>

#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::app_heat_map_test {
namespace {

/// One arm on a grid of two by two, three seeds; steps are censored at 200 in a cell, whose median is, too.
RunResults heat_map_results() {
  RunResults results;
  set_head(results, {{"title", "Map"}, {"figures", Json::array()}});
  results.table.arms = {"learned"};
  results.table.sweep_paths = {"data.n", "model.experts"};
  for (const int n : {10, 20})
    for (const int experts : {2, 4})
      for (int seed = 0; seed < 3; ++seed) {
        const bool is_censored = n == 20 && experts == 4 && seed > 0;
        MetricValues metrics = {{"test_nmse_top1", 0.1 * (1 + seed)},
                                {"steps_to_target_censored", is_censored ? 1 : 0}};
        if (!is_censored) metrics["steps_to_target"] = 100 + seed;
        results.table.rows.push_back(
            {"", "learned", seed, {{"data.n", n}, {"model.experts", experts}}, "done", metrics, {{200, {}}}});
      }
  return results;
}

HeatMap built_map(const char* value, const char* more = "{}") {
  const RunResults results = heat_map_results();
  Json figure = {
      {"kind", "heat_map"}, {"id", "m"}, {"x", "data.n"}, {"y", "model.experts"}, {"value", value}};
  figure.update(Json::parse(more));
  return built_figure<HeatMap>(figure, results);
}

}  // namespace

TEST_CASE("heat maps of positive metrics have the intervals that their captions name") {
  const HeatMap map = built_map("test_nmse_top1");
  CHECK(HeatMapLayout(map).has_intervals);
  CHECK(map.caption.find(", with its 95 % interval of logarithms.") != std::string::npos);
  CHECK(heat_map_csv(map).starts_with("panel,x,y,value,low,high\n"));
  CHECK(built_map("test_nmse_top1", R"({"at_least": 0.2})").caption.find(", with its 95 % interval.") !=
        std::string::npos);
}

TEST_CASE("heat maps of censored steps: which medians are bounds, and how many seeds did not arrive") {
  const HeatMap map = built_map("steps_to_target");
  CHECK(map.panels.at(0).censored == std::vector<bool>{false, false, false, true});
  CHECK(map.panels[0].values.at(3) == 200);
  CHECK(map.caption.find("Median over 3 seeds") != std::string::npos);
  CHECK(map.caption.find(" 2 of 12 seeds had not reached the target") != std::string::npos);
  CHECK(map.caption.find("interval") == std::string::npos);
  CHECK(heat_map_csv(map).find(",200,,,1\n") != std::string::npos);
}

TEST_CASE("the caption of a decided run's heat map says that not every cell has every seed") {
  RunResults results = heat_map_results();
  results.table.is_decided = true;
  results.head.decided = DecidedSeeds{2, {}};
  std::erase_if(results.table.rows,
                [](const ResultRow& row) { return row.seed == 2 && row.point.at(0).second.number() == 20; });
  Json figure = {{"kind", "heat_map"},
                 {"id", "m"},
                 {"x", "data.n"},
                 {"y", "model.experts"},
                 {"value", "test_nmse_top1"}};
  CHECK(built_figure<HeatMap>(figure, results).caption.find("mean over up to 3 seeds of ") !=
        std::string::npos);
  figure["at_least"] = 0.2;
  CHECK(built_figure<HeatMap>(figure, results).caption.find("Share of up to 3 seeds with ") !=
        std::string::npos);
}

TEST_CASE("cells of a heat map that differ by rounding alone have one colour") {
  RunResults results = heat_map_results();
  for (ResultRow& row : results.table.rows)
    row.metrics["test_nmse_top1"] = row.coordinate("data.n")->number() > 10 ? 3 : 3 * (1 - 1e-13);
  const HeatMap map = built_figure<HeatMap>({{"kind", "heat_map"},
                                             {"id", "m"},
                                             {"x", "data.n"},
                                             {"y", "model.experts"},
                                             {"value", "test_nmse_top1"}},
                                            results);
  CHECK(map.high - map.low == doctest::Approx(1));
}

TEST_CASE("heat maps have a panel for each arm and value of further swept paths") {
  RunResults results = heat_map_results();
  results.table.arms = {"learned", "frozen"};
  results.table.sweep_paths.push_back("data.noise_std");
  const std::vector<ResultRow> rows = std::move(results.table.rows);
  results.table.rows.clear();
  for (const std::string& arm : results.table.arms)
    for (ResultRow row : rows)
      for (const int noise : {0, 1}) {
        ResultRow& added = results.table.rows.emplace_back(row);
        added.arm = arm;
        added.point.emplace_back("data.noise_std", noise);
        added.metrics["test_nmse_top1"] = (arm == "frozen" ? 10.0 : 1.0) + noise;
      }
  Json figure = {{"kind", "heat_map"},
                 {"id", "m"},
                 {"x", "data.n"},
                 {"y", "model.experts"},
                 {"value", "test_nmse_top1"}};
  const HeatMap map = built_figure<HeatMap>(figure, results);
  REQUIRE(map.panels.size() == 4);
  CHECK(map.panels[0].name == "learned, noise_std = 0");
  CHECK(map.panels[3].name == "frozen, noise_std = 1");
  for (const auto& [panel, value] : {std::pair{0U, 1.0}, {1U, 2.0}, {2U, 10.0}, {3U, 11.0}})
    for (const std::optional<double>& cell : map.panels[panel].values)
      CHECK(cell.value() == doctest::Approx(value));
  figure["arms"] = {"frozen"};
  CHECK(built_figure<HeatMap>(figure, results).panels.at(1).name == "noise_std = 1");
  figure["where"] = {{"data.noise_std", 1}};
  CHECK(built_figure<HeatMap>(figure, results).panels.at(0).name == "frozen");
}

TEST_CASE("heat maps of too many panels are refused") {
  Json document = example_with("/figures/0", R"({"id": "m", "kind": "heat_map", "x": "data.train_samples",
      "y": "data.noise_std", "value": "train_loss", "arms": ["learned", "frozen"]})");
  document["claims"] = Json::array();
  document["sweep"] = {{"data.train_samples", {640, 1280}}, {"data.noise_std", {0.5, 1}}};
  document["sweep"]["data.mean_std"] = {1, 2, 3, 4, 5, 6};
  CHECK_NOTHROW(expand_scenario(document, "", {}));
  document["sweep"]["data.mean_std"].push_back(7);
  check_refused(document, "", {}, "figures[0].where",
                "leaves 14 panels, one for each arm and value of the swept paths that are neither x nor y");
}

}  // namespace moelab::app_heat_map_test
