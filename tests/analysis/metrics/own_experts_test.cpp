/// Which clusters have an expert of their own.

#include "analysis/metrics/own_experts.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "app/run/cell.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"

namespace moelab::own_experts_test {
namespace {

/// Experts are clusters modulo their number. Eight clusters, of weights 1, 1/2, …, 1/8.
MetricValues measured(int experts) {
  Json document = Json::parse(R"({
    "name": "own_experts",
    "data": {"generator": "gaussian_mixture", "clusters": 8, "weight_power": 1, "dim": 3,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 40, "test_samples": 4000},
    "model": {"router": "oracle", "expert": "constant", "gating": {"train": "top1", "eval": "top1"}},
    "train": {"lr": 0.01, "batch_size": 20, "steps": 1}, "metrics": ["own_experts"], "seeds": {"count": 1}})");
  document["model"]["experts"] = experts;
  const CellResult result =
      run_cell(expand_scenario(document, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result.metrics;
}

}  // namespace

TEST_CASE("own experts: the largest cluster of an expert has it, two experts of a cluster take none away") {
  //                              expert 0: clusters 5 5 7; expert 2: 7 7 7, 9; expert 3: 7, 9
  const std::vector<int> clusters = {5, 5, 7, 7, 7, 7, 9, 7, 9, 4};
  const std::vector<int> serving = {0, 0, 0, 2, 2, 2, 2, 3, 3, -1};
  // 9 has a row at 2 and one at 3: the lower number, of which 7 has more.
  CHECK(own_experts(clusters, serving) == std::map<int, bool>{{5, true}, {7, true}, {9, false}});
  CHECK(own_experts({}, {}).empty());
  CHECK_THROWS_AS(own_experts(clusters, std::vector<int>{0}), InvalidOption);
}

TEST_CASE("own experts: the coupon collector by hand") {
  const Vector even = Vector::Constant(2, 0.5), uneven = Vector{{0.75, 0.25}};
  CHECK(expected_unsampled_clusters(even, 3) == 0.25);
  CHECK(expected_unsampled_clusters(uneven, 2) == 0.0625 + 0.5625);
}

TEST_CASE("own experts: of clusters that share an expert the heaviest has it") {
  const MetricValues all = measured(8);
  CHECK(all.at("own_expert_share") == 1);
  CHECK(all.at("merged_clusters") == 0);
  // Clusters 4 to 7 share with 0 to 3, whose weights are above theirs.
  const MetricValues shared = measured(4);
  CHECK(shared.at("own_expert_share") == 0.5);
  CHECK(shared.at("merged_clusters") == 4);
  for (const char* heavy : {"own_expert_share_quarter1", "own_expert_share_quarter2"})
    CHECK(shared.at(heavy) == 1);
  for (const char* light : {"own_expert_share_quarter3", "own_expert_share_quarter4"})
    CHECK(shared.at(light) == 0);
  double harmonic = 0, expected = 0;
  for (int c = 1; c <= 8; ++c) harmonic += 1.0 / c;
  for (int c = 1; c <= 8; ++c) expected += std::pow(1 - 1.0 / c / harmonic, 4);
  CHECK(std::abs(shared.at("unsampled_clusters") - expected) < 1e-12);
}

}  // namespace moelab::own_experts_test
