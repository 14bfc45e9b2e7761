#include "sim/data/file_data.h"

#include <doctest/doctest.h>

#include <cmath>

#include "app/run/cell.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "sim/data/npy.h"
#include "tests/app/run/test_scenario.h"
#include "tests/sim/data/data_of.h"

namespace moelab::file_data_test {
namespace {

constexpr int kRows = 50, kInputs = 3, kOutputs = 2;

/// A folder with inputs (50, 3), targets (50, 2) and labels (50), and the `data` that names them.
struct Files {
  TemporaryFolder folder;
  std::vector<double> x, y;
  std::vector<std::int64_t> labels;

  Files() {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kInputs; ++j) x.push_back(std::sin(i * kInputs + j));
      for (int j = 0; j < kOutputs; ++j) y.push_back(std::cos(i * kOutputs + j));
      labels.push_back(i % 4);
    }
    write("x", {kRows, kInputs}, x);
    write("y", {kRows, kOutputs}, y);
    write("c", {kRows}, labels);
  }

  std::string name(const std::string& array) const { return (folder.path() / (array + ".npy")).string(); }

  template <class Value>
  void write(const std::string& array, const std::vector<std::int64_t>& shape,
             const std::vector<Value>& values) const {
    std::ofstream(name(array), std::ios::binary) << npy_bytes(shape, std::span<const Value>(values));
  }

  Json data(int train, int test) const {
    return {{"generator", "file"}, {"inputs", name("x")},    {"targets", name("y")},
            {"labels", name("c")}, {"train_samples", train}, {"test_samples", test}};
  }

  Json scenario(const Json& of_data) const {
    return {{"name", "own"},
            {"data", of_data},
            {"model", {{"experts", 4}, {"router", "linear"}, {"expert", "constant"}}},
            {"train", {{"lr", 0.05}, {"batch_size", 8}, {"steps", 20}}},
            {"seeds", {{"count", 2}}}};
  }
};

Dataset drawn(const Json& data, Purpose purpose, int first, int count) {
  Engine engine;
  return draw_problem(data_of(data), {})->draw(engine, {purpose, first, count});
}

/// The error with which a scenario of this data is refused before it runs.
void check_refused(const Files& files, const Json& data, const std::string& path,
                   const std::string& message) {
  try {
    expand_scenario(files.scenario(data), "", {});
    FAIL_CHECK("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == path);
    CHECK_MESSAGE(error.message().find(message) != std::string::npos, error.message());
  }
}

}  // namespace

TEST_CASE("file: the first rows train, the last ones test") {
  const Files files;
  const Json data = files.data(30, 20);
  const Layout layout = draw_problem(data_of(data), {})->layout();
  CHECK(layout.input_dim == kInputs);
  CHECK(layout.output_dim == kOutputs);
  CHECK(draw_problem(data_of(data), {})->clusters() == 4);
  const Dataset train = drawn(data, Purpose::train_data, 10, 20);
  const Dataset test = drawn(data, Purpose::test_data, 0, 20);
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < kInputs; ++j) {
      CHECK(train.x(i, j) == std::sin((10 + i) * kInputs + j));
      CHECK(test.x(i, j) == std::sin((30 + i) * kInputs + j));
    }
    for (int j = 0; j < kOutputs; ++j) CHECK(test.y(i, j) == std::cos((30 + i) * kOutputs + j));
    CHECK(train.cluster[static_cast<std::size_t>(i)] == (10 + i) % 4);
    CHECK(test.cluster[static_cast<std::size_t>(i)] == (30 + i) % 4);
  }
  CHECK_THROWS_AS(drawn(data, Purpose::train_data, 20, 11), InvalidOption);
  CHECK_THROWS_AS(drawn(data, Purpose::evaluation, 0, 1), InvalidOption);
}

TEST_CASE("file: a test set of its own, one target without a second dimension, no labels") {
  const Files files;
  Json data = files.data(50, 2);
  data.erase("labels");
  files.write("y", {kRows}, std::vector<double>(kRows, 0.5));
  files.write("test_x", {3, kInputs}, std::vector<double>(9, 7));
  files.write("test_y", {3, 1}, std::vector<double>(3, 8));
  data["test_inputs"] = files.name("test_x");
  data["test_targets"] = files.name("test_y");
  CHECK(draw_problem(data_of(data), {})->layout().output_dim == 1);
  CHECK(draw_problem(data_of(data), {})->clusters() == 1);
  const Dataset test = drawn(data, Purpose::test_data, 0, 2);
  CHECK(test.x == Matrix::Constant(2, kInputs, 7));
  CHECK(test.y == Matrix::Constant(2, 1, 8));
  CHECK(test.cluster == std::vector<int>{0, 0});
  CHECK(drawn(data, Purpose::train_data, 49, 1).y(0, 0) == 0.5);
}

TEST_CASE("file: a scenario is validated and runs through") {
  const Files files;
  const Scenario scenario = expand_scenario(files.scenario(files.data(30, 20)), "", {});
  REQUIRE(scenario.cells.size() == 2);
  const CellResult result = run_cell(scenario.cells.front(), [](double) { return false; });
  CHECK_MESSAGE(result.state == CellResult::State::done, result.message);
  CHECK(result.metrics.at("test_loss_soft") > 0);
  CHECK(result.metrics.at("effective_experts") >= 1);
  CHECK_FALSE(result.metrics.contains("bayes_nmse"));
}

TEST_CASE("file: sample counts that the files do not have") {
  const Files files;
  check_refused(
      files, files.data(31, 20), "data.train_samples",
      "got 31, but the last data.test_samples = 20 of the 50 rows of data.inputs are the test set: at "
      "most 30 are left");
  check_refused(files, files.data(1, 50), "data.test_samples", "got 50, but data.inputs has 50 rows");
  Json data = files.data(51, 20);
  data["test_inputs"] = files.name("x");
  data["test_targets"] = files.name("y");
  data["test_labels"] = files.name("c");
  check_refused(files, data, "data.train_samples", "got 51, but data.inputs has 50 rows");
  data["train_samples"] = 50;
  data["test_samples"] = 51;
  check_refused(files, data, "data.test_samples", "got 51, but data.test_inputs has 50 rows");
}

TEST_CASE("file: there is no population to take gradients of") {
  const Files files;
  Json document = files.scenario(files.data(30, 20));
  document["data"].erase("train_samples");
  document["train"] = {{"lr", 0.05}, {"steps", 20}, {"gradient", "population"}};
  try {
    expand_scenario(document, "", {});
    FAIL_CHECK("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == "data.inputs");
    CHECK(error.message().find("a file is a sample without a law") != std::string::npos);
  }
}

TEST_CASE("file: arrays that do not fit each other") {
  const Files files;
  const Json good = files.data(30, 20);
  const auto with = [&](const std::string& field, const std::string& array) {
    Json data = good;
    data[field] = files.name(array);
    return data;
  };
  files.write("short", {49, 2}, std::vector<double>(98, 1));
  files.write("cube", {kRows, 1, 1}, std::vector<double>(kRows, 1));
  files.write("negative", {kRows}, std::vector<std::int64_t>(kRows, -1));
  files.write("few", {49}, std::vector<std::int64_t>(49, 0));
  files.write("wide", {kRows, 4}, std::vector<double>(kRows * 4, 1));
  check_refused(files, with("targets", "short"), "data.targets",
                "has shape (49, 2), needs (50, o) or (50,) to match data.inputs of shape (50, 3)");
  check_refused(files, with("inputs", "c"), "data.inputs", "has shape (50,), needs (n, d)");
  check_refused(files, with("targets", "cube"), "data.targets", "has shape (50, 1, 1), needs (50, o)");
  check_refused(files, with("labels", "few"), "data.labels", "has shape (49,), needs (50,)");
  check_refused(files, with("labels", "negative"), "data.labels", "holds -1 in row 0; labels are 0 to");
  check_refused(files, with("labels", "y"), "data.labels", "has shape (50, 2), needs (50,)");
  check_refused(files, with("inputs", "nonesuch"), "data.inputs", "no file");
  check_refused(files, with("test_inputs", "x"), "data.test_targets", "missing; data.test_inputs is given");
  check_refused(files, with("test_labels", "c"), "data.test_labels", "given without data.test_inputs");
  Json own_test = with("test_inputs", "x");
  own_test["test_targets"] = files.name("y");
  check_refused(files, own_test, "data.test_labels", "missing; data.labels is given");
  own_test["test_labels"] = files.name("c");
  own_test["test_inputs"] = files.name("wide");
  check_refused(files, own_test, "data.test_inputs",
                "has shape (50, 4), needs as many columns as data.inputs");
}

TEST_CASE("file: entries that are not finite are found before a run, in the rows that it takes") {
  Files files;
  files.x[31 * kInputs + 2] = std::nan("");
  files.write("x", {kRows, kInputs}, files.x);
  check_refused(files, files.data(10, 20), "data.inputs", "holds nan in row 31, column 2");
  CHECK(expand_scenario(files.scenario(files.data(31, 18)), "", {}).cells.size() == 2);
  check_refused(files, files.data(32, 18), "data.inputs", "holds nan in row 31, column 2");
  files.x[31 * kInputs + 2] = 0;
  files.y[5] = INFINITY;
  files.write("x", {kRows, kInputs}, files.x);
  files.write("y", {kRows, kOutputs}, files.y);
  check_refused(files, files.data(10, 20), "data.targets", "holds inf in row 2, column 1");
}

TEST_CASE("file: cross-entropy takes targets that are probabilities, and names the row that is none") {
  Files files;
  for (int i = 0; i < kRows; ++i) {
    files.y[static_cast<std::size_t>(i * kOutputs)] = i % 3 == 0 ? 0 : 1;
    files.y[static_cast<std::size_t>(i * kOutputs + 1)] = i % 3 == 0 ? 1 : 0;
  }
  files.write("y", {kRows, kOutputs}, files.y);
  Json document = files.scenario(files.data(30, 20));
  document["loss"] = {{"task", "cross_entropy"}};
  const auto metrics = [&] {
    return run_cell(expand_scenario(document, "", {}).cells.front(), [](double) { return false; }).metrics;
  };
  const MetricValues found = metrics();
  CHECK(found.contains("test_accuracy_top1"));
  CHECK_FALSE(found.contains("test_nmse_top1"));
  document["train"]["optimizer"] = "lbfgs";
  CHECK_THROWS_WITH_AS(expand_scenario(document, "", {}), doctest::Contains("train.lr"), InvalidOption);
  document["train"]["optimizer"] = "sgd";
  files.y[2 * 41] = 0.5;
  files.write("y", {kRows, kOutputs}, files.y);
  CHECK_THROWS_WITH_AS(expand_scenario(document, "", {}),
                       doctest::Contains("data.targets: sample 11 of the test set is no indicator"),
                       UserError);
}

}  // namespace moelab::file_data_test
