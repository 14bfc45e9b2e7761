#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "app/report/claim_results.h"
#include "app/run/search.h"
#include "app/store/export.h"
#include "plots/kinds/crossing.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::crossing_run_test {
namespace {

namespace fs = std::filesystem;

/// Searches over 20 … 400 samples at two numbers of experts.
Json searched(const Json& changes = Json::object()) {
  Json scenario = tiny();
  Json crossing = {{"metric", "test_nmse_soft"}, {"level", 0.5}, {"low", 20}, {"high", 400}};
  crossing.update(changes);
  scenario["sweep"] = {{"data.train_samples", {{"crossing", crossing}}}, {"model.experts", {2, 3}}};
  scenario["seeds"]["count"] = 3;
  return scenario;
}

double number_at(const Cell& cell, const std::string& path) {
  for (const auto& [name, value] : cell.point)
    if (name == path) return *value.number();
  return 0;
}

/// A loss of c / n that crosses 0.5 at 50 experts + 7 samples, of the frozen arm at half as many; a seed is
/// up to 10 % off.
double loss_of(const Cell& cell) {
  const double crossing = (50 * number_at(cell, "model.experts") + 7) * (cell.arm == "frozen" ? 0.5 : 1);
  return 0.5 * crossing / number_at(cell, "data.train_samples") * (1 + 0.1 * (cell.seed - 1));
}

CellResult pretend(const Cell& cell, const CellProgress&) {
  CellResult result;
  result.metrics = {{"test_nmse_soft", loss_of(cell)}};
  return result;
}

Scenario run(const Json& document, const fs::path& directory, const CellRunner& runner = pretend) {
  Scenario scenario = expand_scenario(document, "", {});
  run_and_search(scenario, {.directory = directory}, runner);
  return scenario;
}

std::vector<CrossingColumn> columns_in(const fs::path& directory) {
  const RunResults results = load_results(directory);
  return crossing_columns(*results.head.crossing, results.table);
}

std::string state_of(const fs::path& directory) {
  return file_text(directory / "plan.json") + export_csv(load_results(directory), false, {"test_nmse_soft"});
}

}  // namespace

TEST_CASE("crossing run: each arm's crossing is found at each point of the other paths") {
  const TemporaryFolder folder;
  const Scenario scenario = run(searched(), folder.path() / "run");
  const std::vector<CrossingColumn> columns = columns_in(folder.path() / "run");
  REQUIRE(columns.size() == 4);
  // Logarithms are averaged, and seeds' factors with them.
  const double spread = std::cbrt(0.9 * 1.0 * 1.1);
  for (std::size_t i = 0; i < 4; ++i) {
    const double truth = (i % 2 == 0 ? 107 : 157) * (i < 2 ? 1 : 0.5) * spread;
    CAPTURE(i);
    CHECK(columns[i].progress.state == CrossingState::crosses);
    CHECK(columns[i].progress.low < truth);
    CHECK(columns[i].progress.high > truth);
    CHECK(columns[i].progress.high - columns[i].progress.low <= 0.04 * 380);
    CHECK(std::abs(columns[i].estimate.value() / truth - 1) < 0.02);  // 1/n is not straight
    CHECK(columns[i].low.value() < truth);
    CHECK(columns[i].high.value() > truth);
    CHECK(columns[i].note.empty());
    CHECK(columns[i].progress.visited.size() == 7);
  }
  CHECK(scenario.cells.size() == 4 * 7 * 3);
  const Json json = crossings_json(load_results(folder.path() / "run"));
  CHECK(json[1].at("at") == Json{{"model.experts", 3}});
  CHECK(json[1].at("estimate") == *columns[1].estimate);
}

TEST_CASE("crossing run: whole numbers end between neighbours, where a full grid changes sides") {
  const TemporaryFolder folder;
  const fs::path directory = folder.path() / "run";
  run(searched({{"resolution", 1e-4}, {"scale", "log"}}), directory);
  for (const CrossingColumn& column : columns_in(directory)) {
    const auto mean_is_above = [&](double samples) {
      double sum = 0;
      for (int seed = 0; seed < 3; ++seed) {
        Cell cell;
        cell.arm = column.arm;
        cell.seed = seed;
        cell.point = {{"model.experts", *column.at[0].second.number()}, {"data.train_samples", samples}};
        sum += std::log(loss_of(cell) / 0.5);
      }
      return sum >= 0;
    };
    double last_above = 20;
    while (mean_is_above(last_above + 1)) ++last_above;
    CHECK(column.progress.low == last_above);
    CHECK(column.progress.high == last_above + 1);
    CHECK(column.progress.visited.size() <= 12);  // of 381
  }
}

TEST_CASE("crossing run: with an arm named its points are those of all arms") {
  const TemporaryFolder folder;
  const Scenario scenario = run(searched({{"arm", "learned"}}), folder.path() / "run");
  REQUIRE(scenario.crossing->placed.size() == 4);
  CHECK(scenario.crossing->placed[0] == scenario.crossing->placed[2]);
  CHECK(scenario.crossing->placed[0] != scenario.crossing->placed[1]);
  CHECK(columns_in(folder.path() / "run").size() == 2);
}

TEST_CASE("crossing run: against another arm, seeds in pairs") {
  const TemporaryFolder folder;
  Json document = searched({{"arm", "learned"}, {"against", "frozen"}});
  document["sweep"]["data.train_samples"]["crossing"].erase("level");
  // The learned arm's loss falls as 60/n, the frozen arm's stays; what a seed adds is in both.
  const auto runner = [](const Cell& cell, const CellProgress&) {
    const double own = cell.arm == "learned" ? 60 / number_at(cell, "data.train_samples") : 0.4;
    CellResult result;
    result.metrics = {{"test_nmse_soft", own * (1 + cell.seed)}};
    return result;
  };
  run(document, folder.path() / "run", runner);
  for (const CrossingColumn& column : columns_in(folder.path() / "run")) {
    CHECK(column.arm == "learned");
    CHECK(std::abs(column.estimate.value() - 150) < 2);
    CHECK(column.high.value() - column.low.value() < 1e-6);  // the pairs have no spread
  }
}

TEST_CASE("crossing run: interrupted anywhere it ends as if it had not been") {
  const TemporaryFolder folder;
  const std::string whole = (run(searched(), folder.path() / "whole"), state_of(folder.path() / "whole"));
  for (const int first : {1, 5, 12, 20, 40}) {
    const fs::path directory = folder.path() / std::to_string(first);
    int count = 0;
    Scenario scenario = expand_scenario(searched(), "", {});
    SessionOptions options = {.directory = directory};
    options.watch = [&](const SessionProgress&) { return count > first; };
    run_and_search(scenario, options, [&](const Cell& cell, const CellProgress& progress) {
      if (++count > first) {
        CellResult result;
        while (!progress(0.5)) {
        }
        result.state = CellResult::State::interrupted;
        return result;
      }
      return pretend(cell, progress);
    });
    CHECK(state_of(directory) != whole);
    run(searched(), directory);
    CHECK(state_of(directory) == whole);
  }
}

TEST_CASE("crossing run: the plan keeps its id, and is made anew from a session") {
  const TemporaryFolder folder;
  const fs::path directory = folder.path() / "run";
  const Scenario grown = run(searched(), directory);
  CHECK(plan_id(grown) == plan_id(expand_scenario(searched(), "", {})));
  CHECK(plan_ids(directory).size() == 1);
  const FoundPlan found = find_plan(directory);
  CHECK(found.plan.cells.size() == grown.cells.size());
  CHECK(scenario_of(found.plan.head).cells.size() == grown.cells.size());
  // A process that has read less does not take points away.
  keep_plan(directory, expand_scenario(searched(), "", {}));
  CHECK(find_plan(directory).plan.cells.size() == grown.cells.size());
  fs::remove_all(directory / "plans");
  fs::remove(directory / "plan.json");
  CHECK(find_plan(directory).plan.cells.size() == grown.cells.size());
}

TEST_CASE("crossing run: what does not cross or diverged is told, and costs no further cells") {
  const TemporaryFolder folder;
  const auto fails_above = [](double samples, int seeds) {
    return [=](const Cell& cell, const CellProgress& progress) {
      CellResult result = pretend(cell, progress);
      if (number_at(cell, "data.train_samples") > samples && cell.seed < seeds)
        result.state = CellResult::State::diverged;
      return result;
    };
  };
  const Scenario never = run(searched({{"level", 1e-3}}), folder.path() / "never");
  CHECK(never.cells.size() == 4 * 2 * 3);
  for (const CrossingColumn& column : columns_in(folder.path() / "never")) {
    CHECK(column.progress.state == CrossingState::above);
    CHECK_FALSE(column.estimate.has_value());
    CHECK(column.note == "does not cross: both ends of [20, 400] lie above 0.001");
  }
  CHECK(crossings_text(load_results(folder.path() / "never")).find("does not cross") != std::string::npos);
  CHECK(crossings_text(load_results(folder.path() / "never"))
            .ends_with(crossing_coverage_text(kCrossingCoverage) + "\n"));
  run(searched(), folder.path() / "most", fails_above(300, 2));
  for (const CrossingColumn& column : columns_in(folder.path() / "most")) {
    CHECK(column.progress.state == CrossingState::no_value);
    CHECK(column.note == "no mean: at 400 2 of 3 seeds have no value");
  }
  run(searched(), folder.path() / "few", fails_above(300, 1));
  for (const CrossingColumn& column : columns_in(folder.path() / "few")) {
    CHECK(column.progress.state == CrossingState::crosses);
    CHECK(column.note == "cells without a value, left out of means: 1");
  }
}

TEST_CASE("crossing run: as many cells are planned at most as a run comes to have") {
  const TemporaryFolder folder;
  const Scenario start = expand_scenario(searched(), "", {});
  const std::size_t further = most_further_cells(*start.crossing, recorded_table(start, {}));
  const Scenario end = run(searched(), folder.path() / "run");
  CHECK(end.cells.size() <= start.cells.size() + further);
  CHECK(start.cells.size() + further == 4 * 7 * 3);
  CHECK(most_further_cells(*end.crossing, recorded_table(end, read_records(folder.path() / "run"))) == 0);
}

TEST_CASE("crossing run: claims stand where both sides have cells, trends between the ends") {
  const TemporaryFolder folder;
  Json document = searched();
  document["claims"] = Json::parse(R"([
    {"id": "frozen_lower", "left": {"arm": "frozen", "metric": "test_nmse_soft"}, "op": "<",
     "right": {"arm": "learned", "metric": "test_nmse_soft"}},
    {"id": "falls", "arm": "learned", "metric": "test_nmse_soft", "op": "decreases", "along": "data.train_samples"},
    {"id": "rises", "arm": "learned", "metric": "test_nmse_soft", "op": "increases", "along": "model.experts"},
    {"id": "last", "left": {"arm": "frozen", "metric": "test_nmse_soft"}, "op": "<", "right": {"value": 0.5},
     "at": "last"}])");
  run(document, folder.path() / "run");
  const std::vector<ClaimResult> claims = claim_results(load_results(folder.path() / "run"));
  for (const ClaimResult& claim : claims) CHECK_MESSAGE(claim.verdict == Verdict::reproduced, claim.id);
  for (const ClaimPoint& point : claims[0].points) CHECK(point.pairs == 3);
  REQUIRE(claims[1].points.size() == 2);
  CHECK(*claims[1].points[0].left_at[1].second.number() == 400);
  CHECK(*claims[1].points[0].right_at[1].second.number() == 20);
  CHECK(*claims[3].points[0].left_at[1].second.number() == 400);
}

TEST_CASE("crossing run: drawn over another path, with its interval, or as an expression") {
  const TemporaryFolder folder;
  Json document = searched();
  document["figures"] = Json::parse(R"([
    {"id": "plain", "kind": "crossing", "x": "model.experts"},
    {"id": "derived", "kind": "crossing", "x": "model.experts / data.clusters",
     "y": "data.train_samples / model.experts", "y_scale": "log", "power_law": ["model.experts"]},
    {"id": "lines", "kind": "crossing", "x": "model.experts / model.experts", "series": "model.experts",
     "laws": ["log ( model.experts ) * model.experts"]}])");
  run(document, folder.path() / "run");
  const RunResults results = load_results(folder.path() / "run");
  const std::vector<CrossingColumn> columns = columns_in(folder.path() / "run");
  const Figure plain = std::get<Figure>(build_figure(results.head.figures[0], figure_source(results, ".")));
  REQUIRE(plain.panels.size() == 1);
  REQUIRE(plain.panels[0].series.size() == 2);
  const FigurePoint& point = plain.panels[0].series[1].points[1];
  CHECK(point.x == 3);
  CHECK(point.mean == columns[3].estimate);
  CHECK(point.low == columns[3].low);
  const Figure derived = std::get<Figure>(build_figure(results.head.figures[1], figure_source(results, ".")));
  CHECK(derived.panels[0].series[1].points[1].x == 1);
  CHECK(derived.panels[0].series[1].points[1].mean.value() == doctest::Approx(*columns[3].estimate / 3));
  // Two numbers of experts leave nothing to tell an interval from.
  CHECK(plain.caption.find("Power law") == std::string::npos);
  CHECK(derived.caption.find(": none, of too few crossings (2).") != std::string::npos);
  CHECK(figure_csv(derived).find("series,x,mean,low,high") != std::string::npos);
  const Figure lines = std::get<Figure>(build_figure(results.head.figures[2], figure_source(results, ".")));
  REQUIRE(lines.panels.size() == 1);
  CHECK(lines.panels[0].series.size() == 4);  // two arms at two numbers of experts
  CHECK(lines.caption.find("leaves a standard deviation of ") != std::string::npos);
  document["figures"][2]["series"] = "data.train_samples";
  CHECK_THROWS_WITH_AS(expand_scenario(document, "", {}),
                       doctest::Contains("needs another path than the searched one"), UserError);
}

TEST_CASE("the printed coverage of crossings and of their power laws is the measured one") {
  std::ifstream file(MOELAB_TEST_DATA "/calibration/table.json");
  CrossingCoverage measured{{100, 0}, {100, 0}, {100, 0}};
  const Json calibration = Json::parse(file);
  for (const Json& row : calibration.at("rows")) {
    const std::string key = row.at("key");
    if (!key.starts_with("crossing_") && key != "power_law") continue;
    Interval& range = key == "crossing_shared" ? measured.shared
                      : key == "power_law"     ? measured.exponent
                                               : measured.independent;
    for (const Json& cell : row.at("cells")) {
      const double coverage = 100 * cell.at("coverage").get<double>();
      range = {std::min(range.low, coverage), std::max(range.high, coverage)};
    }
  }
  CHECK(crossing_coverage_text(measured) == crossing_coverage_text(kCrossingCoverage));
  CHECK(measured.exponent.low == doctest::Approx(kCrossingCoverage.exponent.low));
  CHECK(measured.exponent.high == doctest::Approx(kCrossingCoverage.exponent.high));
}

}  // namespace moelab::crossing_run_test
