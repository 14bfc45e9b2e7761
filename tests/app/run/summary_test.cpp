#include "app/run/summary.h"

#include <doctest/doctest.h>

#include <cmath>

#include "app/scenario/sweep_values.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::summary_test {
namespace {

ResultTable example() {
  const Scenario scenario = small_scenario();
  ResultTable table;
  table.arms = scenario.arms;
  table.sweep_paths = scenario.sweep_paths;
  double value = 0;
  for (const Cell& cell : scenario.cells) {
    value += 1;
    table.rows.push_back({cell.id, cell.arm, cell.seed, read_point(cell.point), "done", {{"m", value}}, {}});
  }
  table.rows.back().state = "diverged";
  return table;
}

}  // namespace

TEST_CASE("summary: means over seeds, and what is missing") {
  const std::vector<SummaryEntry> entries = summarize(example(), "m");
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].estimate->mean == 1.5);
  CHECK(entries[0].planned == 2);
  CHECK(entries[3].estimate->mean == 7);
  CHECK(entries[3].estimate->count == 1);
  // Two values 1 apart: half the interval is t_1(0.975) / 2 = 12.706 / 2.
  CHECK(summary_text(example(), "m") ==
        "m (mean over seeds ± half of the 95 % interval)\n"
        "data.train_samples  learned    frozen\n"
        "10                  1.5 ± 6.4  5.5 ± 6.4\n"
        "20                  3.5 ± 6.4  7 (1 of 2)\n");
  CHECK(summarize(example(), "absent")[0].estimate.has_value() == false);
}

TEST_CASE("summary: a metric that is declared positive has the geometric mean, as the figures") {
  ResultTable table = example();
  for (ResultRow& row : table.rows) row.metrics["test_nmse_top1"] = row.metrics.at("m");
  const std::vector<SummaryEntry> entries = summarize(table, "test_nmse_top1");
  CHECK(entries[0].estimate->mean == doctest::Approx(std::sqrt(2.0)));
  CHECK(entries[0].estimate->interval->low > 0);
  CHECK(summary_text(table, "test_nmse_top1").starts_with("test_nmse_top1 (geometric mean over seeds [95 %"));
}

TEST_CASE("summary: the main metric is the first figure's") {
  RunResults results;
  results.plan = {{"figures", Json::array()}};
  CHECK(main_metric(results) == "test_nmse_top1");
  results.plan["scenario"] = Json::parse(R"({"loss": {"task": "cross_entropy"}})");
  CHECK(main_metric(results) == "test_loss_eval");
  results.plan["figures"].push_back({{"id", "f"}, {"y", "effective_experts"}});
  CHECK(main_metric(results) == "effective_experts");
  results.plan["figures"][0]["y"] = {"router_norm_ratio", "other"};
  CHECK(main_metric(results) == "router_norm_ratio");
  results.plan["figures"][0] = {{"kind", "heat_map"}, {"y", "model.experts"}, {"value", "effective_experts"}};
  CHECK(main_metric(results) == "effective_experts");
}

}  // namespace moelab::summary_test
