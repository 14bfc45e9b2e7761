/// What a cell's id says of the files that a cell reads.

#include <doctest/doctest.h>

#include "app/run/cell.h"
#include "app/scenario/cells.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/scenario/example.h"
#include "tests/sim/data/array_file.h"
#include "tests/sim/data/cifar_files.h"

namespace moelab::cell_identity_test {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 12;

/// Files x, y and z in a folder: inputs and targets, and inputs to evaluate on.
void write_arrays(const fs::path& folder, double shift_of_z) {
  write_array(folder / "x.npy", kRows, 0);
  write_array(folder / "y.npy", kRows, 1);
  write_array(folder / "z.npy", kRows, shift_of_z);
}

Json scenario_of(const Json& data) {
  Json scenario = example_scenario();
  for (const char* part : {"arms", "sweep", "claims", "figures", "profiles", "save"}) scenario.erase(part);
  scenario["data"] = data;
  scenario["model"]["experts"] = 2;
  scenario["train"]["batch_size"] = 2;
  scenario["seeds"] = {{"count", 1}};
  return scenario;
}

std::string id_of(const Json& scenario) {
  return expand_scenario(scenario, "", {}).cells.at(0).id;
}

Json file_scenario(const fs::path& folder) {
  const auto name = [&](const char* file) { return (folder / file).string(); };
  Json scenario = scenario_of({{"generator", "file"},
                               {"inputs", name("x.npy")},
                               {"targets", name("y.npy")},
                               {"train_samples", 6},
                               {"test_samples", 4}});
  scenario["evaluations"] = {{"other", {{"data.inputs", name("z.npy")}}}};
  return scenario;
}

}  // namespace

TEST_CASE("files count by what they hold, wherever they lie, those of evaluations too") {
  const TemporaryFolder folder;
  write_arrays(folder.path() / "here", 5);
  write_arrays(folder.path() / "there", 5);
  write_arrays(folder.path() / "changed", 6);
  const Json scenario = file_scenario(folder.path() / "here");
  CHECK(id_of(scenario) == id_of(file_scenario(folder.path() / "there")));
  CHECK(id_of(scenario) != id_of(file_scenario(folder.path() / "changed")));
  Json without = scenario;
  without.erase("evaluations");
  CHECK(id_of(without) != id_of(scenario));
}

TEST_CASE("a folder of images counts by the files in it") {
  const TemporaryFolder folder;
  const auto write_images = [&](const char* name, int mark_of_test) {
    fs::create_directories(folder.path() / name);
    write_records(folder.path() / name / "train.bin", {0, 1, 0, 1}, 1);
    write_records(folder.path() / name / "test.bin", {1, 0, 1}, mark_of_test);
  };
  write_images("here", 9);
  write_images("there", 9);
  write_images("changed", 10);
  const auto id = [&](const char* name) {
    return id_of(scenario_of({{"generator", "image_clusters"},
                              {"path", (folder.path() / name).string()},
                              {"classes", 2},
                              {"train_samples", 4},
                              {"test_samples", 3}}));
  };
  CHECK(id("here") == id("there"));
  CHECK(id("here") != id("changed"));
}

TEST_CASE("a cell of which a file holds other bytes than its id says is not run") {
  const TemporaryFolder folder;
  write_arrays(folder.path(), 5);
  const Cell cell = expand_scenario(file_scenario(folder.path()), "", {}).cells.at(0);
  const auto run = [&] { return run_cell(cell, [](double) { return false; }); };
  const MetricValues metrics = run().metrics;
  for (const auto& [name, shift] : {std::pair("x.npy", 0.0), {"y.npy", 1.0}, {"z.npy", 5.0}}) {
    const fs::path file = folder.path() / name;
    write_array(file, kRows, shift + 0.5);
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(file.c_str()), EnvironmentError);
    fs::remove(file);
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(file.c_str()), EnvironmentError);
    write_array(file, kRows, shift);  // the same bytes in another file, later
    CHECK(run().metrics == metrics);
  }
}

TEST_CASE("a cell of which an image has changed is not run") {
  const TemporaryFolder folder;
  const auto write_images = [&](int mark) {
    write_records(folder.path() / "train.bin", {0, 1, 0, 1}, mark);
    write_records(folder.path() / "test.bin", {1, 0, 1}, 9);
  };
  write_images(1);
  const Cell cell = expand_scenario(scenario_of({{"generator", "image_clusters"},
                                                 {"path", folder.path().string()},
                                                 {"classes", 2},
                                                 {"train_samples", 4},
                                                 {"test_samples", 3}}),
                                    "", {})
                        .cells.at(0);
  const auto run = [&] { return run_cell(cell, [](double) { return false; }); };
  run();
  write_images(2);
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("train.bin: holds other bytes"), EnvironmentError);
}

TEST_CASE("a fixed temperature has another id than a learned one, wherever the router stands") {
  const auto id_with = [](const char* router) {
    Json scenario = example_scenario();
    for (const char* part : {"arms", "sweep", "claims", "figures", "profiles", "save"}) scenario.erase(part);
    scenario["model"]["router"] = Json::parse(router);
    return id_of(scenario);
  };
  const std::string fixed = id_with(R"({"kind": "cosine", "temperature": 3})");
  const std::string learned = id_with(R"({"kind": "cosine", "temperature": {"start": 3, "learned": true}})");
  CHECK(fixed != learned);
  CHECK(learned == id_with(R"({"kind": "cosine", "temperature": {"start": 3}})"));
  CHECK(fixed == id_with(R"({"kind": "cosine", "temperature": {"start": 3, "learned": false}})"));
  CHECK(id_with(R"({"kind": "cosine"})") != fixed);
  CHECK(learned != id_with(R"({"kind": "cosine", "temperature": {"start": 2, "learned": true}})"));
  CHECK(learned ==
        "216fdd36a7aa5764");  // that of a number when a number was the start of a learned temperature
}

}  // namespace moelab::cell_identity_test
