#include "app/run/cost.h"

#include <doctest/doctest.h>

#include "tests/app/commands/tiny_run.h"

namespace moelab {
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
}

TEST_CASE("cost: like cells tell the time; others take the speed of recorded cells, or a nominal one") {
  const Scenario scenario = tiny_scenario();
  Records records;
  const RunCost guessed = run_cost(scenario, records, 1);
  double all = 0;
  for (const Cell& cell : scenario.cells) all += estimated_cost(cell).operations;
  CHECK(guessed.seconds == doctest::Approx(all / kNominalSpeed));
  CHECK(guessed.source.find("a guess (8)") != std::string::npos);
  CHECK(run_cost(scenario, records, 2).seconds == doctest::Approx(guessed.seconds / 2));
  CHECK(run_cost(scenario, records, 100).seconds == doctest::Approx(guessed.seconds / 8));

  // One seed of the first setting: its sibling takes as long, the others by their operations.
  const Cell& first = scenario.cells[0];
  records[first.id] = timed(first, 3);
  const double per_operation = 3 / estimated_cost(first).operations;
  const RunCost mixed = run_cost(scenario, records, 1);
  CHECK(mixed.seconds == doctest::Approx(3 + per_operation * (all - 2 * estimated_cost(first).operations)));
  CHECK(mixed.source.find("the recorded times of like cells (1)") != std::string::npos);
  CHECK(mixed.source.find("as in recorded cells (6)") != std::string::npos);

  for (std::size_t i = 0; i < scenario.cells.size(); i += 2)
    records[scenario.cells[i].id] = timed(scenario.cells[i], 2.0 + static_cast<double>(i));
  const RunCost like = run_cost(scenario, records, 1);
  CHECK(like.seconds == doctest::Approx(2 + 4 + 6 + 8));
  CHECK(like.source == "the recorded times of like cells (4)");
  for (const Cell& cell : scenario.cells) records[cell.id] = timed(cell, 1);
  CHECK(run_cost(scenario, records, 1).seconds == 0);
  CHECK(run_cost(scenario, records, 1).bytes == 0);
}

}  // namespace moelab
