/// Clusters of rows, which of them have an expert, and which levels of a tree of clusters experts resolve.

#include "analysis/metrics/sparsity.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "analysis/metrics/layer_rows.h"
#include "app/run/cell.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/sim/data/data_of.h"

namespace moelab::sparsity_test {
namespace {

const Layout kPairs{.input_dim = 1, .output_dim = 1, .labels = 2};

/// Effective experts by the ending of the metric's name.
std::map<std::string, double> effective_experts(const Matrix& probabilities, const std::vector<int>& labels) {
  std::map<std::string, double> values;
  for (const ClusterLabels& clusters : cluster_labels(kPairs, labels)) {
    ClusterRouting routing(probabilities.cols());
    for (const std::vector<int>& column : clusters.labels) routing.add(probabilities, column);
    values[clusters.suffix] = routing.effective_experts();
  }
  return values;
}

MetricValues metrics_of(const Json& document) {
  const CellResult result =
      run_cell(expand_scenario(document, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result.metrics;
}

/// Experts are clusters modulo their number. Eight clusters, of weights 1, 1/2, …, 1/8.
MetricValues own_experts_of(int experts) {
  Json document = Json::parse(R"({
    "name": "own_experts",
    "data": {"generator": "gaussian_mixture", "clusters": 8, "weight_power": 1, "dim": 3,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 40, "test_samples": 4000},
    "model": {"router": "oracle", "expert": "constant", "gating": {"train": "top1", "eval": "top1"}},
    "train": {"lr": 0.01, "batch_size": 20, "steps": 1}, "metrics": ["own_experts", "cluster_losses", "task"], "seeds": {"count": 1}})");
  document["model"]["experts"] = experts;
  return metrics_of(document);
}

MetricValues levels_of(int experts, int branching) {
  Json document = Json::parse(R"({
    "name": "levels",
    "data": {"generator": "gaussian_mixture", "dim": 3, "target": {"kind": "constant", "dim": 2},
             "train_samples": 40, "test_samples": 2000},
    "model": {"router": "oracle", "expert": "constant", "gating": {"train": "top1", "eval": "top1"}},
    "train": {"lr": 0.01, "batch_size": 20, "steps": 1}, "metrics": ["levels"], "seeds": {"count": 1}})");
  document["data"]["hierarchy"] = {{"depth", 2}, {"branching", branching}, {"std_per_level", 1}};
  document["model"]["experts"] = experts;
  return metrics_of(document);
}

}  // namespace

TEST_CASE("samples of one label and tokens are in that label's cluster") {
  const std::vector<int> labels = {3, 1, 3, 0};
  for (const Layout& layout :
       {Layout{.input_dim = 1, .output_dim = 1}, Layout{.sequences = true, .tokens = 2, .labels = 2}}) {
    const std::vector<ClusterLabels> clusters = cluster_labels(layout, labels);
    REQUIRE(clusters.size() == 1);
    CHECK(clusters[0].suffix.empty());
    CHECK(clusters[0].labels == std::vector<std::vector<int>>{labels});
  }
}

TEST_CASE("samples of several parts: by set, by each part, and all together") {
  // The order of the parts makes no other set.
  const std::vector<ClusterLabels> clusters = cluster_labels(kPairs, {4, 7, 1, 4, 7, 4, 1, 7});
  REQUIRE(clusters.size() == 3);
  CHECK(clusters[0].suffix.empty());
  CHECK(clusters[0].labels == std::vector<std::vector<int>>{{0, 1, 0, 2}});
  CHECK(clusters[1].suffix == "_per_atom");
  CHECK(clusters[1].labels == std::vector<std::vector<int>>{{4, 1, 7, 1}, {7, 4, 4, 7}});
  CHECK(clusters[2].suffix == "_overall");
  CHECK(clusters[2].labels == std::vector<std::vector<int>>{{0, 0, 0, 0}});
}

TEST_CASE("effective experts by hand: the pair, one atom fixed, all") {
  // Pairs {0, 1}, {0, 2}, {1, 2} of equal share, each with its own expert.
  const std::map<std::string, double> values = effective_experts(Matrix::Identity(3, 3), {0, 1, 0, 2, 1, 2});
  CHECK(values.at("") == doctest::Approx(1));
  CHECK(values.at("_per_atom") == doctest::Approx(2));
  CHECK(values.at("_overall") == doctest::Approx(3));
}

TEST_CASE("effective experts are nested: of a set ≤ with one atom fixed ≤ of all") {
  constexpr int kRows = 8000, kExperts = 16, kDim = 8;
  const Seeds seeds{1, 0};
  const DataOptions data =
      data_of({{"generator", "dictionary"}, {"atoms", 8}, {"dim", kDim}, {"train_samples", 1}});
  const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
  const Dataset drawn = draw_set(*problem, seeds, Purpose::test_data, kRows);
  Matrix weight(kExperts, kDim);
  Engine engine = seeds.stream(Purpose::router_init);
  fill_normal(engine, 1.0, weight.data(), static_cast<std::size_t>(weight.size()));
  Matrix probabilities = (drawn.x * weight.transpose()).array().exp();
  for (int i = 0; i < kRows; ++i) probabilities.row(i) /= probabilities.row(i).sum();

  const std::map<std::string, double> values = effective_experts(probabilities, drawn.cluster);
  CHECK(values.at("") < values.at("_per_atom"));
  CHECK(values.at("_per_atom") < values.at("_overall"));

  // Labels of other rows say nothing of a row: what is left of the gap between one atom fixed and all is the
  // scatter of means over some two thousand rows.
  std::vector<int> others(drawn.cluster.begin() + 2, drawn.cluster.end());
  others.insert(others.end(), drawn.cluster.begin(), drawn.cluster.begin() + 2);
  const std::map<std::string, double> unrelated = effective_experts(probabilities, others);
  const auto gap = [](const std::map<std::string, double>& of) {
    return of.at("_overall") - of.at("_per_atom");
  };
  CHECK(gap(unrelated) < 0.1 * gap(values));
}

TEST_CASE("own experts: the largest cluster of an expert has it, two experts of a cluster take none away") {
  //                              expert 0: clusters 5 5 7; expert 2: 7 7 7, 9; expert 3: 7, 9
  const std::vector<int> clusters = {5, 5, 7, 7, 7, 7, 9, 7, 9, 4};
  const std::vector<int> serving = {0, 0, 0, 2, 2, 2, 2, 3, 3, -1};
  // 9 has a row at 2 and one at 3: the lower number, and 7 has more rows there.
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
  const MetricValues all = own_experts_of(8);
  CHECK(all.at("own_expert_share") == 1);
  CHECK(all.at("merged_clusters") == 0);
  // Clusters 4 to 7 share with 0 to 3, whose weights are above theirs.
  const MetricValues shared = own_experts_of(4);
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

TEST_CASE("losses of clusters: each cluster counts alike, whatever its rows") {
  const MetricValues all = own_experts_of(8);
  double mean = 0;
  for (int quarter = 1; quarter <= 4; ++quarter)
    mean += all.at("test_loss_quarter" + std::to_string(quarter)) / 4;
  CHECK(std::abs(all.at("test_loss_clusters") - mean) < 1e-12 * mean);
  // Rows are weighed by 1, 1/2, …, 1/8: their mean loss is another one.
  CHECK(std::abs(all.at("test_loss_clusters") - all.at("test_loss_eval")) > 0.01 * mean);
}

TEST_CASE(
    "levels: an expert for each cluster resolves all, one for each place among siblings the last alone") {
  const MetricValues all = levels_of(9, 3);
  CHECK(std::abs(all.at("resolved_share_level1") - 1) < 1e-12);
  CHECK(std::abs(all.at("resolved_share_level2") - 1) < 1e-12);
  // Entropies of 2000 rows in 3 and 9 clusters are below ln 3 and ln 9 by about (parts − 1) / (2 · 2000).
  CHECK(std::abs(all.at("mutual_information_level1") - std::log(3)) < 0.01);
  CHECK(std::abs(all.at("mutual_information_level2") - std::log(9)) < 0.02);
  // Cluster mod 3 is the place among siblings.
  const MetricValues siblings = levels_of(3, 3);
  CHECK(siblings.at("resolved_share_level1") < 0.01);
  CHECK(std::abs(siblings.at("resolved_share_level2") - 0.5) < 0.01);
  CHECK_FALSE(siblings.contains("resolved_share_level3"));
}

}  // namespace moelab::sparsity_test
