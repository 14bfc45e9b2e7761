#include <doctest/doctest.h>

#include <cmath>

#include "app/run/cell.h"
#include "app/run/figures.h"
#include "app/run/results.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "plots/kinds/lines.h"
#include "plots/report/table.h"
#include "sim/base/error.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::rate_results_test {
namespace {

/// Least-squares fits of two components: a mixture of a perturbed cosine router and one with linear gates.
Json rates_scenario() {
  return Json::parse(R"({
    "name": "rates",
    "data": {"generator": "moe_regression", "dim": 2, "router": "perturbed_cosine", "expert": "linear",
             "measure": {"kind": "given", "gate": [[2, 0], [-1, 1.5]], "bias": [0, 0.3],
                         "slope": [[1, -0.5], [-0.5, 1.5]], "intercept": [0.5, -0.5]},
             "noise_std": 0.1, "train_samples": 100, "test_samples": 50},
    "model": {"experts": 2, "router": "perturbed_cosine", "expert": "linear"},
    "train": {"optimizer": "lbfgs", "start": {"kind": "warm"}, "steps": 500, "precision": "double"},
    "metrics": ["voronoi", "fit"],
    "arms": {"perturbed": {}, "linear": {"data.router": "linear", "model.router": {"kind": "linear", "bias": true}}},
    "sweep": {"model.experts": [2, 3], "data.train_samples": [100, 200, 400]},
    "seeds": {"count": 3},
    "claims": [{"id": "fast", "op": "rate", "arm": "perturbed", "metric": "voronoi_loss",
                "along": "data.train_samples", "exponent": -0.5, "where": {"model.experts": 2}}],
    "figures": [{"id": "rates", "kind": "rate_panels", "x": "data.train_samples",
                 "y": ["expert_error_exact", "expert_error_over"], "series": "model.experts",
                 "rows": ["row"], "columns": ["perturbed", "linear"], "reported": {"linear": "n^-1/2"}}]})");
}

std::string refusal(const char* pointer, const char* value) {
  Json document = rates_scenario();
  document[Json::json_pointer(pointer)] = Json::parse(value);
  try {
    expand_scenario(document, "", {});
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("fits from a scenario: metrics, entries, table and panels") {
  const Scenario scenario = expand_scenario(rates_scenario(), "", {});
  RunResults results;
  results.head = scenario;
  results.table.arms = scenario.arms;
  results.table.sweep_paths = scenario.sweep_paths;
  for (const Cell& cell : scenario.cells) {
    const CellResult result = run_cell(cell, [](double) { return false; });
    REQUIRE(result.state == CellResult::State::done);
    REQUIRE(result.trace.size() == 2);
    CHECK(result.trace.front().step == 0);
    CHECK(result.metrics.at("fit_evaluations") <= static_cast<double>(result.trace.back().step));
    CHECK(result.metrics.contains("fit_converged"));
    CHECK(result.metrics.contains("expert_error_over") ==
          (config_json(*cell.options).at("model").at("experts") == 3));
    results.table.rows.push_back(
        {cell.id, cell.arm, cell.seed, cell.point, "done", result.metrics, result.trace});
  }
  // A test of the wiring; the rates themselves are judged on more data.
  const std::vector<RateEntry> entries = rate_entries(*scenario.figures[0].as<RateOptions>(), results.table);
  REQUIRE(entries.size() == 6);  // two arms: one fit of two; one and several of three
  CHECK(entries[0].name == "2 experts, (a, b), one fit");
  CHECK(entries[2].name == "3 experts, (a, b), several fits");
  REQUIRE(entries[0].estimate.slope);
  CHECK(entries[0].estimate.slope->count == 3);
  const RatePanels figure =
      std::get<RatePanels>(build_figure(scenario.figures[0], figure_source(results, ".")));
  REQUIRE(figure.panels.size() == 2);
  REQUIRE(figure.panels[0].size() == 3);
  const RateLine& line = figure.panels[0][0];
  REQUIRE(line.points.size() == 3);
  // The fitted line is a power law of the mean slope.
  CHECK(std::abs(std::log(*line.points[2].fitted / *line.points[0].fitted) / std::log(4.0) -
                 entries[0].estimate.slope->mean) < 1e-12);
  const std::string text = rates_text(results);
  CHECK(text.find("3 experts, (a, b), several fits") != std::string::npos);
  CHECK(text.find("(n^-1/2)") != std::string::npos);
  const std::vector<Table> tables = rate_tables(results);
  REQUIRE(tables.size() == 3);
  CHECK(tables[0].head == std::vector<std::string>{"", "perturbed", "linear"});
  CHECK(tables[0].rows[0][0] == "row");
  CHECK(tables[0].rows[0][2].ends_with("(n^-1/2)"));
  const std::string markdown = rates_markdown(results);
  CHECK(markdown.find("\n|  | perturbed | linear |\n|---|---|---|\n| row | ") != std::string::npos);
  const Json json = rates_json(results);
  REQUIRE(json.size() == 6);
  CHECK(json[0].at("repetitions") == 3);
  CHECK(json[3].at("reported") == "n^-1/2");
  CHECK(json[0].at("reported").is_null());
  // Fits that missed a better one stay in, and are counted.
  CHECK_FALSE(json[0].contains("fits_worse_than_oracle"));
  for (ResultRow& row : results.table.rows) row.metrics["fit_worse_than_oracle"] = row.seed == 0 ? 1 : 0;
  const Json counted = rates_json(results);
  CHECK(counted[0].at("repetitions") == 3);
  CHECK(counted[0].at("fits_worse_than_oracle") == 3);
  CHECK(counted[0].at("fits_with_oracle") == 9);
  CHECK(rates_text(results).find("3 of 9 fits worse than their oracle-started fit") != std::string::npos);
}

TEST_CASE("what a scenario of fits and rates may get wrong") {
  CHECK(refusal("/train/precision", "\"float\"").starts_with("train.precision: got \"float\""));
  CHECK(refusal("/train/lr", "0.1") == "train.lr: given, but train.optimizer is \"lbfgs\"");
  CHECK(refusal("/train/batch_size", "10") == "train.batch_size: given, but train.optimizer is \"lbfgs\"");
  CHECK(refusal("/train/gradient", "\"population\"").starts_with("train.gradient: got \"population\""));
  CHECK(refusal("/train/optimizer", "\"sgd\"").starts_with("train.start: given, but"));
  CHECK(refusal("/data/expert", "\"relu\"").starts_with("train.start: got \"warm\", needs a mixture"));
  CHECK(refusal("/model/layers", "2").starts_with("train.start: got \"warm\", needs a mixture"));
  CHECK(refusal("/sweep/model.experts", "[1, 2]").find("needs the 2 components") != std::string::npos);
  CHECK(refusal("/arms/linear/model.router", "\"linear\"").find("model.router.bias") != std::string::npos);
  CHECK(refusal("/claims/0/window", "[150, 500]") ==
        "claims[0].window: leaves 2 values, a slope needs at least three");
  CHECK(refusal("/claims/0/window", "[5, 2]").starts_with("claims[0].window: got [5,2], needs"));
  CHECK(refusal("/claims/0/where", "{}").starts_with("claims[0].where: leaves several sweep points"));
  CHECK(refusal("/claims/0/arm", "\"perturbd\"").find("did you mean 'perturbed'?") != std::string::npos);
  CHECK(refusal("/figures/0/rows", "[\"a\", \"b\"]").starts_with("figures[0].rows: and columns make 4"));
  CHECK(refusal("/figures/0/x", "\"model.experts\"").starts_with("figures[0]"));
  CHECK(refusal("/figures/0/kind", "\"lines\"").starts_with("figures[0].rows: unknown key 'rows'"));
}

}  // namespace
}  // namespace moelab::rate_results_test
