/// Cells whose tasks come one after another.

#include <doctest/doctest.h>

#include <csignal>

#include "app/run/cell.h"
#include "app/run/results.h"
#include "app/run/session.h"
#include "app/scenario/scenario.h"
#include "app/store/export.h"
#include "tests/temporary_folder.h"

namespace moelab::continual_run_test {
namespace {

Json sequence(int steps) {
  Json scenario = Json::parse(R"({
    "name": "sequence",
    "data": {"generator": "task_pool", "tasks": 3, "groups": 3, "dim": 6, "rows": 3, "noise_std": 0.1,
             "within": 0, "weight_norm": 1, "test_samples": 30},
    "model": {"experts": 3, "router": {"kind": "oracle"}, "expert": {"kind": "linear", "bias": false, "init_scale": 0},
              "gating": {"train": "sequence_top1", "eval": "sequence_top1"}},
    "train": {"gradient": "population", "points": 1, "optimizer": "minimum_norm", "lr": 1, "precision": "double",
              "rounds": {"order": "cycle"}},
    "metrics": ["continual"], "seeds": {"count": 2}})");
  scenario["train"]["steps"] = steps;
  scenario["train"]["record_every"] = steps;
  return scenario;
}

MetricValues metrics_of(const Json& scenario) {
  const Scenario expanded = expand_scenario(scenario, "", {});
  const CellResult result = run_cell(expanded.cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result.metrics;
}

}  // namespace

TEST_CASE("with an expert for each task nothing is forgotten, and one expert forgets") {
  Json scenario = sequence(12);
  const MetricValues own = metrics_of(scenario);
  CHECK(own.at("tasks_seen") == 3);
  // A round of 3 rows in 6 dimensions takes about half of an expert's error, and each task has had four.
  CHECK(own.at("expert_generalisation_error") < 0.3);
  CHECK(own.at("expert_forgetting") < 0);
  CHECK(own.at("backward_transfer") > 0);
  scenario["model"]["experts"] = 1;
  const MetricValues single = metrics_of(scenario);
  CHECK(single.at("expert_generalisation_error") > 2 * own.at("expert_generalisation_error"));
  CHECK(single.at("expert_forgetting") > 0.1);
  CHECK(single.at("forgetting") > 0);
  CHECK(single.at("backward_transfer") < 0);
}

TEST_CASE("forgetting is the mean over earlier rounds, whatever is recorded in between") {
  Json scenario = sequence(7);
  scenario["model"]["experts"] = 1;
  const MetricValues once = metrics_of(scenario);
  scenario["train"]["record_every"] = 1;
  const MetricValues always = metrics_of(scenario);
  for (const auto& [name, value] : once) CHECK(always.at(name) == value);
}

TEST_CASE("500 tasks resume after an interruption, to the same export") {
  const TemporaryFolder folder;
  const Scenario scenario = expand_scenario(sequence(500), "", {});
  run_session(scenario, {folder.path() / "whole", 1, {}}, run_cell);
  std::signal(SIGINT, SIG_DFL);
  int count = 0;
  run_session(scenario, {folder.path() / "parts", 1, {}},
              [&](const Cell& cell, const CellProgress& progress) {
                if (++count == 1) return run_cell(cell, progress);
                std::raise(SIGINT);
                CHECK(progress(0.1));
                CellResult result;
                result.state = CellResult::State::interrupted;
                return result;
              });
  CHECK(read_records(folder.path() / "parts").size() == 1);
  run_session(scenario, {folder.path() / "parts", 1, {}}, run_cell);
  const auto exported = [&](const char* name) {
    return export_csv(load_results(folder.path() / name), true, {});
  };
  CHECK(exported("whole") == exported("parts"));
  CHECK(exported("whole").find("backward_transfer") != std::string::npos);
}

}  // namespace moelab::continual_run_test
