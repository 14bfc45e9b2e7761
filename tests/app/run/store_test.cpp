#include "app/store/store.h"

#include <doctest/doctest.h>

#include "app/run/results.h"
#include "app/scenario/overrides.h"
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
  CHECK(error.find("test_nmse_top1: ") != std::string::npos);
  CHECK(error.find("vector level unknown") != std::string::npos);
  CHECK(error.find("--keep b.jsonl") != std::string::npos);
}

TEST_CASE("store: arrays are known to whoever reads the state alone, and lost ones come back") {
  const TemporaryFolder folder;
  const Cell cell = small_scenario().cells[0];
  CellResult result = pretend_run(cell);
  result.arrays = {{"router_weight", {1, 2}, {0.5, 0.25}, {}}};
  StoreWriter(folder.path()).write(cell.id, result, 2.5);
  const Record state = read_records(folder.path(), RecordPart::state).at(cell.id);
  const Record whole = read_records(folder.path()).at(cell.id);
  REQUIRE(state.arrays.size() == 1);
  CHECK(state.metrics.empty());
  const fs::path file = array_file(folder.path(), cell.id, "router_weight");
  const std::string bytes = file_text(file), recorded = state.arrays.at("router_weight");
  CHECK(array_problem(file, recorded).empty());
  write_text(file, bytes + "x");
  CHECK(array_problem(file, recorded) == "other bytes than were recorded");
  fs::remove(file);
  CHECK(array_problem(file, recorded) == "missing");
  CHECK(restore_arrays(folder.path(), whole, result).empty());
  CHECK(file_text(file) == bytes);
  fs::remove(file);
  result.metrics["a_metric"] += 1e-15;
  CHECK(restore_arrays(folder.path(), whole, result).starts_with("a_metric: "));
  CHECK_FALSE(fs::exists(file));
}

TEST_CASE("store: results hold the planned cells alone, in the plan's order") {
  const TemporaryFolder folder;
  Scenario scenario = small_scenario();
  write_text(folder.path() / "plan.json", plan_text(scenario, plan_id(scenario)));
  Cell unplanned = scenario.cells[0];
  unplanned.id = "unplanned";
  write_text(folder.path() / "journal/a.jsonl", line_of(unplanned) + line_of(scenario.cells[3]));
  const RunResults results = load_results(folder.path());
  CHECK(results.head.name == "small");
  CHECK(results.table.arms == scenario.arms);
  CHECK(results.table.sweep_paths == scenario.sweep_paths);
  REQUIRE(results.table.rows.size() == scenario.cells.size());
  for (std::size_t i = 0; i < scenario.cells.size(); ++i) {
    const ResultRow& row = results.table.rows[i];
    CHECK(row.cell == scenario.cells[i].id);
    CHECK(row.arm == scenario.cells[i].arm);
    CHECK(row.seed == scenario.cells[i].seed);
    CHECK(row.point == scenario.cells[i].point);
    CHECK(row.state == (i == 3 ? "done" : "missing"));
  }
  CHECK(results.table.rows[3].metrics == pretend_run(scenario.cells[3]).metrics);
}

}  // namespace moelab::store_test
