#include "app/run/store.h"

#include <doctest/doctest.h>

#include "app/run/results.h"
#include "app/scenario/scenario_file.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::store_test {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string line_of(const Cell& cell, double shift = 0) {
  CellResult result = pretend_run(cell);
  result.metrics["test_nmse_top1"] += shift;
  return record_line({cell.id, "done", "", result.metrics, result.trace, 1.0, "now"}) + "\n";
}

std::string error_of(const fs::path& directory) {
  try {
    read_records(directory);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("store: records and arrays come back") {
  const TemporaryFolder folder;
  const Cell cell = small_scenario().cells[0];
  CellResult result = pretend_run(cell);
  result.arrays = {{"router_weight", {1, 2}, {0.5, 0.25}, {}}, {"test_labels", {3}, {}, {1, 2, 3}}};
  StoreWriter(folder.path()).write(cell.id, result, 2.5);
  const Records records = read_records(folder.path());
  REQUIRE(records.size() == 1);
  CHECK(records.at(cell.id).metrics == result.metrics);
  CHECK(records.at(cell.id).seconds == 2.5);
  const fs::path arrays = folder.path() / "cells" / cell.id;
  CHECK(fs::file_size(arrays / "router_weight.npy") == 128 + 2 * 8);
  CHECK(fs::file_size(arrays / "test_labels.npy") == 128 + 3 * 8);
  CHECK(std::distance(fs::directory_iterator(arrays), fs::directory_iterator()) == 2);
}

TEST_CASE("store: a last line without its end is dropped") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  const std::string second = line_of(scenario.cells[1]);
  for (const std::size_t kept : {std::size_t{1}, second.size() / 2, second.size() - 1}) {
    write_text(folder.path() / "journal/a.jsonl", line_of(scenario.cells[0]) + second.substr(0, kept));
    const Records records = read_records(folder.path());
    CHECK(records.size() == 1);
    CHECK(records.contains(scenario.cells[0].id));
  }
}

TEST_CASE("store: a damaged line is refused with its file and line") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  std::string damaged = line_of(scenario.cells[1]);
  damaged[damaged.size() / 2] ^= 1;
  write_text(folder.path() / "journal/a.jsonl",
             line_of(scenario.cells[0]) + damaged + line_of(scenario.cells[2]));
  CHECK(error_of(folder.path()).find("a.jsonl:2: damaged") != std::string::npos);
  write_text(folder.path() / "journal/a.jsonl", "\n");
  CHECK(error_of(folder.path()).find("a.jsonl:1: damaged") != std::string::npos);
}

TEST_CASE("store: equal duplicates merge, different ones are named") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  write_text(folder.path() / "journal/a.jsonl", line_of(scenario.cells[0]));
  write_text(folder.path() / "journal/b.jsonl", line_of(scenario.cells[1]) + line_of(scenario.cells[0]));
  CHECK(read_records(folder.path()).size() == 2);
  write_text(folder.path() / "journal/b.jsonl", line_of(scenario.cells[0], 1e-15));
  const std::string error = error_of(folder.path());
  CHECK(error.find("a.jsonl:1") != std::string::npos);
  CHECK(error.find("b.jsonl:1") != std::string::npos);
}

TEST_CASE("store: results hold the planned cells alone, in the plan's order") {
  const TemporaryFolder folder;
  Scenario scenario = small_scenario();
  write_text(folder.path() / "plan.json", plan_json(scenario).dump());
  Cell unplanned = scenario.cells[0];
  unplanned.id = "unplanned";
  write_text(folder.path() / "journal/a.jsonl", line_of(unplanned) + line_of(scenario.cells[3]));
  const RunResults results = load_results(folder.path());
  CHECK(results.plan.at("name") == "small");
  CHECK(results.table.arms == scenario.arms);
  CHECK(results.table.sweep_paths == scenario.sweep_paths);
  REQUIRE(results.table.rows.size() == scenario.cells.size());
  for (std::size_t i = 0; i < scenario.cells.size(); ++i) {
    const ResultRow& row = results.table.rows[i];
    CHECK(row.cell == scenario.cells[i].id);
    CHECK(row.arm == scenario.cells[i].arm);
    CHECK(row.seed == scenario.cells[i].seed);
    CHECK(row.point == read_point(scenario.cells[i].point));
    CHECK(row.state == (i == 3 ? "done" : "missing"));
  }
  CHECK(results.table.rows[3].metrics == pretend_run(scenario.cells[3]).metrics);
}

TEST_CASE("store: a folder without a plan, or with a damaged one, is no run") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(load_results(folder.path()), UserError);
  write_text(folder.path() / "plan.json", "{\"name\": ");
  CHECK_THROWS_AS(load_results(folder.path()), UserError);
  write_text(folder.path() / "plan.json", "{\"name\": \"small\"}");
  CHECK_THROWS_AS(load_results(folder.path()), UserError);
  for (const Json& cells : {Json(3), Json::array({3}), Json::array({{{"id", "a"}}}), Json()}) {
    Json plan = plan_json(small_scenario());
    plan["cells"] = cells;
    write_text(folder.path() / "plan.json", plan.dump());
    CHECK_THROWS_AS(load_results(folder.path()), UserError);
  }
}

TEST_CASE("store: a plan of another version is refused, and one that says none is of the first") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "plan.json";
  Json plan = plan_json(small_scenario());
  CHECK(plan.at("version") == kPlanVersion);
  const auto refusal = [&] {
    write_text(file, plan.dump());
    try {
      load_results(folder.path());
    } catch (const UserError& error) {
      CHECK_THROWS_AS(check_run_directory(folder.path(), "small"), UserError);
      return std::string(error.what());
    }
    CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
    return std::string();
  };
  CHECK(refusal().empty());
  for (const Json& version : {Json(kPlanVersion + 1), Json(0), Json("1"), Json()}) {
    plan["version"] = version;
    const std::string error = refusal();
    CHECK(error.find("plan.json: version: got " + version.dump() +
                     ", but this program reads version 1 of the plan") != std::string::npos);
  }
  plan.erase("version");
  CHECK(refusal().empty());
  plan["scenario"]["version"] = kScenarioVersion + 1;
  CHECK(refusal().find("plan.json: scenario.version: got 2, but this program reads version 1") !=
        std::string::npos);
}

TEST_CASE("store: which folders a run may take") {
  const TemporaryFolder folder;
  CHECK_NOTHROW(check_run_directory(folder.path() / "new", "small"));
  CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  write_text(folder.path() / ".plan.json.17.tmp", "left by a killed process");
  CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  write_text(folder.path() / "thesis.tex", "precious");
  CHECK_THROWS_AS(check_run_directory(folder.path(), "small"), UserError);
  CHECK_THROWS_AS(check_run_directory(folder.path() / "thesis.tex", "small"), UserError);
  write_text(folder.path() / "plan.json", plan_json(small_scenario("other")).dump());
  CHECK_THROWS_AS(check_run_directory(folder.path(), "small"), UserError);
  CHECK_NOTHROW(check_run_directory(folder.path(), "other"));
}

}  // namespace moelab::store_test
