/// Which levels of a tree of clusters experts resolve.

#include <doctest/doctest.h>

#include <cmath>

#include "app/run/cell.h"
#include "app/scenario/scenario.h"

namespace moelab::levels_test {
namespace {

MetricValues measured(int experts, int branching) {
  Json document = Json::parse(R"({
    "name": "levels",
    "data": {"generator": "gaussian_mixture", "dim": 3, "target": {"kind": "constant", "dim": 2},
             "train_samples": 40, "test_samples": 2000},
    "model": {"router": "oracle", "expert": "constant", "gating": {"train": "top1", "eval": "top1"}},
    "train": {"lr": 0.01, "batch_size": 20, "steps": 1}, "metrics": ["levels"], "seeds": {"count": 1}})");
  document["data"]["hierarchy"] = {{"depth", 2}, {"branching", branching}, {"std_per_level", 1}};
  document["model"]["experts"] = experts;
  const CellResult result =
      run_cell(expand_scenario(document, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result.metrics;
}

}  // namespace

TEST_CASE(
    "levels: an expert for each cluster resolves all, one for each place among siblings the last alone") {
  const MetricValues all = measured(9, 3);
  CHECK(std::abs(all.at("resolved_share_level1") - 1) < 1e-12);
  CHECK(std::abs(all.at("resolved_share_level2") - 1) < 1e-12);
  // Entropies of 2000 rows in 3 and 9 clusters are below ln 3 and ln 9 by about (parts − 1) / (2 · 2000).
  CHECK(std::abs(all.at("mutual_information_level1") - std::log(3)) < 0.01);
  CHECK(std::abs(all.at("mutual_information_level2") - std::log(9)) < 0.02);
  // Cluster mod 3 is the place among siblings.
  const MetricValues siblings = measured(3, 3);
  CHECK(siblings.at("resolved_share_level1") < 0.01);
  CHECK(std::abs(siblings.at("resolved_share_level2") - 0.5) < 0.01);
  CHECK_FALSE(siblings.contains("resolved_share_level3"));
}

}  // namespace moelab::levels_test
