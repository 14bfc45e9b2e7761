#include <doctest/doctest.h>

#include <map>

#include "analysis/metrics/measured_data.h"
#include "analysis/metrics/sparsity.h"
#include "tests/sim/data/data_of.h"

namespace moelab::cluster_labels_test {
namespace {

const Layout kPairs{.input_dim = 1, .output_dim = 1, .labels = 2};

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

TEST_CASE("effective experts by hand: the pair, one atom fixed, all") {
  // Pairs {0, 1}, {0, 2}, {1, 2} of equal share, each with an expert of its own.
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

}  // namespace
}  // namespace moelab::cluster_labels_test
