#include "app/run/cost.h"

#include <doctest/doctest.h>

#include "tests/app/cli/tiny_run.h"

namespace moelab::cost_test {
namespace {

Scenario tiny_scenario(const std::vector<std::string>& settings = {}) {
  return expand_scenario(tiny(), "", settings);
}

double operations(const std::vector<std::string>& settings) {
  return estimated_cost(tiny_scenario(settings).cells[0]).operations;
}

double bytes(const std::vector<std::string>& settings) {
  return estimated_cost(tiny_scenario(settings).cells[0]).bytes;
}

Record timed(const Cell& cell, double seconds) {
  return {cell.id, "done", "", {}, {}, seconds, ""};
}

}  // namespace

TEST_CASE("cost: operations by hand") {
  // 3 experts of 2 constants and a router of 3 · 4 weights: 18 parameters. 4 steps of 10 rows; measured are
  // 30 test and 20 training rows at 2 + 10 records.
  CHECK(operations({}) == 6.0 * 18 * 4 * 10 + 2.0 * 18 * 12 * 50);
}

TEST_CASE("cost: grows with what it depends on") {
  CHECK(operations({"train.steps=8"}) == operations({}) + 6.0 * 18 * 4 * 10);
  CHECK(operations({"model.experts=6"}) == 2 * operations({}));
  CHECK(operations({"model.gating.train={\"kind\": \"topk\", \"k\": 1}"}) < operations({}));
  CHECK(bytes({"data.test_samples=1000000"}) > 1e6 * 8 * 6);
  CHECK(bytes({"sweep={\"data.train_samples\": [1000000]}"}) > 1e6 * 4 * 6);
  CHECK(bytes({"data.clusters=1000000"}) > 1e6 * 8 * 8);
  CHECK(bytes({"train.steps=100000", "train.record_every=1"}) > 1e5 * 5 * 90);
}

TEST_CASE("cost: of experts that no memory holds") {
  const std::string experts = "model.expert={\"kind\": \"mlp\", \"depth\": 3, \"width\": 1000000}";
  for (const char* saved : {"[]", "[\"weights\"]", "[\"routing_steps\"]"}) {
    CAPTURE(saved);
    CHECK(bytes({experts, std::string("save=") + saved}) > 3 * 1e12 * sizeof(float));
  }
}

TEST_CASE("cost: fits from many starts count their evaluations") {
  const Scenario rates = load_scenario(MOELAB_TEST_DATA "/../scenarios/perturbed_cosine/rates.json", "", {});
  // 20 starts of 150 evaluations of 1000 rows and 5 of 80 steps, each worth ten evaluations; two experts.
  REQUIRE(config_json(*rates.cells[0].options).at("data").at("train_samples") == 1000);
  CHECK(estimated_cost(rates.cells[0]).seconds ==
        doctest::Approx(kNominalFit * 2 * 1000 * (20 * 150 + 5 * 80 * 10)).epsilon(0.2));
  // From one start: 3000 steps of all rows; three experts.
  const Scenario cold =
      load_scenario(MOELAB_TEST_DATA "/../scenarios/perturbed_cosine/cold_starts.json", "", {});
  REQUIRE(config_json(*cold.cells[0].options).at("data").at("train_samples") == 1000);
  CHECK(estimated_cost(cold.cells[0]).seconds == doctest::Approx(kNominalFit * 3 * 1000 * 3000).epsilon(0.2));
}

TEST_CASE("cost: a Bayes prediction reads the mean of every cluster") {
  const auto seconds = [](const std::string& clusters) {
    return estimated_cost(tiny_scenario({"data.test_samples=40000", "data.clusters=" + clusters}).cells[0])
        .seconds;
  };
  CHECK(seconds("100000") > 10 * seconds("1000"));
  CHECK(seconds("100000") > 40000 * 1e5 * kNominalBayes);
}

TEST_CASE("cost: of the missing cells alone, and it says what it is learned from") {
  const Scenario scenario = tiny_scenario();
  Records records;
  const RunCost guessed = run_cost(scenario, records, 1);
  double all = 0;
  for (const Cell& cell : scenario.cells) all += estimated_cost(cell).seconds;
  CHECK(guessed.seconds == doctest::Approx(all));
  CHECK(guessed.learned == 0);
  CHECK(guessed.source == "a model of a usual machine: none of the 8 cells is done");
  CHECK(run_cost(scenario, records, 2).seconds == doctest::Approx(guessed.seconds / 2));

  records[scenario.cells[0].id] = timed(scenario.cells[0], 3);
  const RunCost first = run_cost(scenario, records, 1);
  CHECK(first.learned == 1);
  CHECK(first.source == "1 cell done, and a model for 6 at arms and sweep points where none is");

  for (std::size_t i = 0; i < scenario.cells.size(); i += 2)
    records[scenario.cells[i].id] = timed(scenario.cells[i], 2.0 + static_cast<double>(i));
  const RunCost like = run_cost(scenario, records, 1);
  CHECK(like.seconds == doctest::Approx(2 + 4 + 6 + 8));
  CHECK(like.source == "4 cells done");
  CHECK(run_cost(scenario, records, 100).seconds == doctest::Approx(8));  // the longest cell
  for (const Cell& cell : scenario.cells) records[cell.id] = timed(cell, 1);
  CHECK(run_cost(scenario, records, 1).seconds == 0);
  CHECK(run_cost(scenario, records, 1).bytes == 0);
}

}  // namespace moelab::cost_test
