/// Metrics of routing that changes over training and between tokens, from the scenario to the cell.

#include <doctest/doctest.h>

#include <cmath>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/routing.h"
#include "app/run/cell.h"
#include "app/scenario/scenario.h"

namespace moelab::fluctuation_test {
namespace {

constexpr int kTest = 40, kTokens = 6, kExperts = 5, kInputs = 4;

/// Sums of a few hundred terms of order one, rounded in double.
constexpr double kRounding = 1e-12;

CellResult run(const std::string& router, int steps) {
  Json scenario = Json::parse(R"({
    "name": "fluctuation",
    "data": {"generator": "token_topics", "topics": 6, "dim": 4, "tokens": 6, "train_samples": 100,
             "test_samples": 40, "target": {"kind": "linear", "dim": 3}},
    "model": {"experts": 5, "expert": {"kind": "mlp", "depth": 2, "width": 6}},
    "train": {"optimizer": "adam", "lr": 0.05, "batch_size": 20, "record_every": 10, "precision": "double"},
    "metrics": ["routing", {"kind": "fluctuation", "k": 3}], "save": ["routing", "weights"],
    "seeds": {"count": 1}})");
  scenario["model"]["router"] = router;
  scenario["train"]["steps"] = steps;
  CellResult result = run_cell(expand_scenario(scenario, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result;
}

Matrix saved(const CellResult& result, const std::string& name, Eigen::Index columns) {
  for (const SavedArray& array : result.arrays) {
    if (array.name != name) continue;
    const Eigen::Index size = static_cast<Eigen::Index>(array.values.size());
    return MatrixView(array.values.data(), size / columns, columns);
  }
  FAIL("no array " << name);
  return {};
}

TEST_CASE("fluctuation compares the routing of the test rows with that of the record before") {
  const CellResult early = run("linear", 10), late = run("linear", 20);
  const Matrix before = saved(early, "test_probs", kExperts), now = saved(late, "test_probs", kExperts);
  const double top1 = routing_fluctuation(top1_assignment(before), top1_assignment(now)).value();
  const double sets = routing_fluctuation(topk_assignment(before, 3), topk_assignment(now, 3), 3).value();
  CHECK(late.metrics.at("routing_fluctuation") == top1);
  CHECK(late.metrics.at("routing_fluctuation_topk") == sets);
  CHECK(top1 > 0);
  CHECK(sets > top1);
  CHECK_FALSE(late.trace.front().metrics.contains("routing_fluctuation"));  // no record before the first
  CHECK(early.metrics.at("routing_fluctuation") == late.trace[1].metrics.at("routing_fluctuation"));
}

TEST_CASE("the entropy before mixing is that of the base's own probabilities") {
  const CellResult plain = run("linear", 10), mixed = run("similarity_aware", 10);
  CHECK_FALSE(plain.metrics.contains("routing_entropy_base"));
  const Matrix scores =
      saved(mixed, "test_inputs", kInputs) * saved(mixed, "router_weight", kInputs).transpose();
  Matrix r = scores.array().exp();
  r.array().colwise() /= r.rowwise().sum().array();
  REQUIRE(r.rows() == kTest * kTokens);
  CHECK(std::abs(mixed.metrics.at("routing_entropy_base") - routing_entropy(r)) < kRounding);
  CHECK(std::abs(mixed.metrics.at("routing_entropy") -
                 routing_entropy(saved(mixed, "test_probs", kExperts))) < kRounding);
  // Mixing can raise the mean entropy or lower it.
  CHECK(std::abs(mixed.metrics.at("routing_entropy") - mixed.metrics.at("routing_entropy_base")) > 0.01);
}

}  // namespace
}  // namespace moelab::fluctuation_test
