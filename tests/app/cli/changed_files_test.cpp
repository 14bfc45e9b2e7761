/// Cells whose files are changed while, or after, a run worked on them.

#include <doctest/doctest.h>

#include "app/run/session.h"
#include "app/scenario/cells.h"
#include "sim/base/error.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/sim/data/array_file.h"

namespace moelab::changed_files_test {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 60;

Json file_scenario(const fs::path& folder) {
  Json scenario = tiny();
  scenario["data"] = {{"generator", "file"},
                      {"inputs", (folder / "x.npy").string()},
                      {"targets", (folder / "y.npy").string()},
                      {"test_samples", 10}};
  scenario["evaluations"] = {{"other", {{"data.inputs", (folder / "z.npy").string()}}}};
  return scenario;
}

struct FileBench {
  TemporaryFolder arrays;
  fs::path x = arrays.path() / "x.npy", y = arrays.path() / "y.npy", z = arrays.path() / "z.npy";
  Bench bench{file_scenario(arrays.path())};
  FileBench() {
    write_array(x, kRows, 0);
    write_array(y, kRows, 1);
    write_array(z, kRows, 2);
  }
};

}  // namespace

TEST_CASE("changed files: a file that changes while the run works ends it before another cell is recorded") {
  const FileBench files;
  for (const fs::path& file : {files.x, files.z}) {
    const fs::path run = files.bench.folder.path() / ("run" + file.stem().string());
    const Scenario scenario = load_scenario(files.bench.file, "", {});
    int cells = 0;
    const auto change_before_third = [&](const Cell& cell, const CellProgress& progress) {
      if (++cells == 3) write_array(file, kRows, 7);
      return run_cell(cell, progress);
    };
    CHECK_THROWS_WITH_AS(run_session(scenario, {.directory = run}, change_before_third),
                         doctest::Contains((file.string() + ": holds other bytes").c_str()),
                         EnvironmentError);
    CHECK(read_records(run).size() == 2);
    write_array(file, kRows, file == files.x ? 0 : 2);
  }
}

TEST_CASE("changed files: an evaluation's other file makes other cells, and the old ones are not run again") {
  const FileBench files;
  const Bench& bench = files.bench;
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string cell = Json::parse(ask({"export", bench.run, "--json"}).out).at("rows")[0][0];
  CHECK(ask({"reproduce", bench.run, cell}).status == 0);
  write_array(files.z, kRows, 9);
  const Answer again = ask({"reproduce", bench.run, cell});
  CHECK(again.status == 3);
  CHECK(again.err.find(files.z.string()) != std::string::npos);
  CHECK(ask({"reproduce", bench.run, "nothing"}).status == 2);
  CHECK(Json::parse(ask({"plan", bench.file, "--out", bench.run, "--json"}).out).at("to_run") == 8);
}

TEST_CASE("changed files: a sample is of the files that its cell's id says") {
  const FileBench files;
  const Cell cell = load_scenario(files.bench.file, "", {}).cells.front();
  write_array(files.y, kRows, 3);
  const auto draw = [&](const std::shared_ptr<FileContents>& contents) {
    DataOptions data = cell.options->experiment.data;
    data.contents = contents;
    draw_problem(data, cell.seeds());
  };
  draw(nullptr);
  CHECK_THROWS_WITH_AS(draw(cell.options->experiment.data.contents),
                       doctest::Contains("y.npy: holds other bytes"), EnvironmentError);
}

}  // namespace moelab::changed_files_test
