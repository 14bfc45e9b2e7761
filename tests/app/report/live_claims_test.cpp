/// What a terminal shows of the claims of a run that goes on.

#include <doctest/doctest.h>

#include "app/report/claim_results.h"
#include "app/store/plan.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::live_claims_test {
namespace {

Json claiming() {
  return tiny_with_claims(R"([
    {"id": "better", "op": "<", "left": {"arm": "learned", "metric": "test_nmse_soft"},
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}}])");
}

/// The text when every cell is recorded, with the values of its arm and seed.
std::string text_with(double (*value)(const Cell&)) {
  const Bench bench(claiming());
  const Scenario scenario = load_scenario(bench.file, "", {});
  keep_plan(bench.run, scenario);
  LiveClaims live;
  live.begin(scenario, bench.run);
  for (const Cell& cell : scenario.cells) {
    CellResult result;
    result.metrics = {{"test_nmse_soft", value(cell)}};
    live.record(cell, result);
  }
  return live.text();
}

}  // namespace

TEST_CASE("live claims: the numbers come first, and the place last") {
  const std::string text = text_with([](const Cell& cell) {
    return 0.5 + 0.1 * cell.seed * (cell.arm == "learned" ? 1 : -1) + (cell.arm == "learned" ? 0 : 0.1);
  });
  const std::size_t begin = text.find("  better: ratio "), end = text.find('\n', begin);
  REQUIRE_MESSAGE(begin != std::string::npos, text);
  const std::string line = text.substr(begin, end - begin);
  CHECK_MESSAGE(line.find(", 3 pairs, inconclusive so far, open at 2 of 2 points; data.train_samples = ") !=
                    std::string::npos,
                line);
  CHECK(line.find("3 pairs") < 80);
}

TEST_CASE("live claims: a claim that is uninformative everywhere says so") {
  const std::string text = text_with([](const Cell& cell) { return 1.5 + 0.1 * cell.seed; });
  CHECK_MESSAGE(text.find("  better: uninformative so far\n") != std::string::npos, text);
  CHECK(text.find("0 of 2") == std::string::npos);
}

}  // namespace moelab::live_claims_test
