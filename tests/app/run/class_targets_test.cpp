/// Targets that are classes, from the scenario to the metrics of a cell.

#include <doctest/doctest.h>

#include <cmath>

#include "analysis/metrics/task.h"
#include "app/run/cell.h"

namespace moelab::class_targets_test {
namespace {

constexpr int kTest = 50, kTokens = 6, kClasses = 3;

Json document(const std::string& loss, const Json& target) {
  Json scenario = Json::parse(R"({
    "name": "classes",
    "data": {"generator": "token_topics", "topics": 4, "dim": 5, "tokens": 6, "mean_std": 2, "train_samples": 100,
             "test_samples": 50},
    "model": {"experts": 4, "router": "linear", "expert": {"kind": "mlp", "depth": 2, "width": 6}},
    "train": {"optimizer": "adam", "lr": 0.01, "batch_size": 20, "steps": 100, "precision": "double"},
    "metrics": ["task", "expert_outputs"], "save": ["routing"], "seeds": {"count": 1},
    "evaluations": {"replaced": {"data.contamination": {"kind": "replaced", "share": 0.5}},
                    "attacked": {"data.contamination": {"kind": "spsa", "budget": 0.3, "steps": 3}}}})");
  scenario["loss"] = {{"task", loss}};
  scenario["data"]["target"] = target;
  return scenario;
}

CellResult run(const std::string& loss, const Json& target) {
  CellResult result =
      run_cell(expand_scenario(document(loss, target), "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result;
}

/// A saved array, a token a row.
Matrix rows_of(const CellResult& result, const std::string& name) {
  for (const SavedArray& array : result.arrays) {
    if (array.name != name) continue;
    CHECK(array.shape == std::vector<std::int64_t>{kTest, kTokens, kClasses});
    return MatrixView(array.values.data(), kTest * kTokens, kClasses);
  }
  FAIL("no array " << name);
  return {};
}

const Json kClassTarget = {{"kind", "class"}, {"classes", kClasses}};

TEST_CASE("cross-entropy and accuracy are those of the saved outputs; normalised losses are left out") {
  const CellResult result = run("cross_entropy", kClassTarget);
  const Matrix targets = rows_of(result, "test_targets");
  for (const std::string ending : {"soft", "top1"}) {
    const Matrix outputs = rows_of(result, "test_outputs_" + ending);
    CHECK(result.metrics.at("test_loss_" + ending) == mean_cross_entropy(outputs, targets));
    CHECK(result.metrics.at("test_accuracy_" + ending) == accuracy(outputs, targets));
    CHECK_FALSE(result.metrics.contains("test_nmse_" + ending));
  }
  for (const char* name : {"train_nmse", "bayes_nmse"}) CHECK_FALSE(result.metrics.contains(name));
  for (const char* name : {"train_accuracy", "test_accuracy_eval", "task_signal_variance"})
    CHECK(result.metrics.contains(name));
  const MetricValues &before = result.trace.front().metrics, &after = result.metrics;
  CHECK(after.at("train_loss") < 0.5 * before.at("train_loss"));
  CHECK(after.at("test_accuracy_soft") > before.at("test_accuracy_soft"));
  CHECK(after.at("test_accuracy_soft") <= after.at("bayes_accuracy") + 0.05);
  CHECK(after.at("replaced.test_accuracy_soft") < after.at("test_accuracy_soft"));
  CHECK(after.at("attacked.test_loss_soft") > after.at("test_loss_soft"));
}

TEST_CASE("classes under mse have both, regression targets no accuracy") {
  const CellResult classes = run("mse", kClassTarget);
  CHECK(classes.metrics.contains("test_nmse_soft"));
  CHECK(classes.metrics.contains("bayes_nmse"));
  CHECK(classes.metrics.contains("test_accuracy_soft"));
  CHECK(classes.metrics.at("test_loss_soft") ==
        mean_squared_error(rows_of(classes, "test_outputs_soft"), rows_of(classes, "test_targets")));
  const CellResult numbers = run("mse", {{"kind", "linear"}, {"dim", kClasses}});
  CHECK(numbers.metrics.contains("test_nmse_soft"));
  CHECK_FALSE(numbers.metrics.contains("test_accuracy_soft"));
  CHECK_FALSE(numbers.metrics.contains("bayes_accuracy"));
  // Variances are over tokens, not over places in the sequence.
  const Matrix targets = rows_of(numbers, "test_targets");
  CHECK(numbers.metrics.at("test_nmse_soft") ==
        numbers.metrics.at("test_loss_soft") / label_variance(targets));
}

}  // namespace
}  // namespace moelab::class_targets_test
