/// Feature weights of all clusters, their draws, and interquartile ranges.

#include "sim/model/router/cluster_weights.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/base/numerics.h"

namespace moelab::cluster_weights_test {
namespace {

using Normalize = ClusterWeighting::Normalize;

/// Quotients of small numbers.
constexpr double kRounding = 1e-14;

std::vector<double> weighed(const ClusterWeighting& weighting, const std::vector<double>& dispersions,
                            std::size_t dim) {
  std::vector<double> weights(dispersions.size());
  weigh_clusters(weighting, dispersions, dim, weights);
  return weights;
}

void check_near(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i]) < kRounding);
}

}  // namespace

TEST_CASE("cluster weights: mean 1 over features, over clusters, or over all, by hand") {
  // 1/s: (1, 1/2) and (1/4, 1/4).
  const std::vector<double> dispersions = {1, 2, 4, 4};
  check_near(weighed({}, dispersions, 2), {4.0 / 3, 2.0 / 3, 1, 1});
  check_near(weighed({.normalize = Normalize::clusters}, dispersions, 2), {1.6, 4.0 / 3, 0.4, 2.0 / 3});
  check_near(weighed({.normalize = Normalize::global}, dispersions, 2), {2, 1, 0.5, 0.5});
  // 1/(s + 1): (1/2, 1/3) and (1/5, 1/5).
  check_near(weighed({.guard = 1}, dispersions, 2), {1.2, 0.8, 1, 1});
  check_near(weighed({.normalize = Normalize::global, .clip = 1.5}, dispersions, 2), {1.5, 1, 0.5, 0.5});
  check_near(weighed({.clip = 1.0}, dispersions, 2), {1, 2.0 / 3, 1, 1});
}

TEST_CASE(
    "cluster weights: the default is that of Eq. 21 to the last bit; what has no dispersion has weight 1") {
  const std::vector<double> dispersions = {0.3, 1.7, 0.9, 0, 0, 0, 0.2, 0, 5};
  std::vector<double> expected;
  for (std::size_t first = 0; first < dispersions.size(); first += 3) {
    for (const double weight : inverse_dispersion_weights(std::span(dispersions).subspan(first, 3)))
      expected.push_back(weight);
  }
  CHECK(weighed({}, dispersions, 3) == expected);
  // An empty cluster, and a feature without dispersion, count in no mean.
  for (const Normalize normalize : {Normalize::clusters, Normalize::global}) {
    const std::vector<double> weights = weighed({.normalize = normalize}, dispersions, 3);
    for (const std::size_t i : {3U, 4U, 5U, 7U}) CHECK(weights[i] == 1);
  }
  check_near(weighed({.normalize = Normalize::clusters}, {1, 0, 3, 0}, 2), {1.5, 1, 0.5, 1});
  for (const double weight : weighed({.normalize = Normalize::global}, {1, NAN}, 2))
    CHECK(std::isnan(weight));
}

TEST_CASE("cluster weights: draws have mean 1 in each cluster, and the deviation that they are named for") {
  Engine engine(1);
  constexpr std::size_t kClusters = 400, kDim = 50;
  std::vector<double> weights(kClusters * kDim);
  draw_cluster_weights(engine, kDim, weights);
  double squares = 0;
  for (std::size_t first = 0; first < weights.size(); first += kDim) {
    double sum = 0;
    for (std::size_t q = 0; q < kDim; ++q) {
      CHECK(weights[first + q] >= 0);
      sum += weights[first + q];
      squares += std::pow(weights[first + q] - 1, 2);
    }
    CHECK(std::abs(sum / kDim - 1) < 1e-12);
  }
  // Of N(1, 0.5²) without the 2.3 % below 0: 20000 draws leave a standard error of 0.0025.
  CHECK(std::abs(std::sqrt(squares / static_cast<double>(weights.size())) - 0.48) < 0.02);
}

TEST_CASE("interquartile ranges by hand: linear between the two nearest of a cluster's values") {
  // Cluster 0: 1, 2, 4, 10 and -1, -1, -1, -1; cluster 1: a single row; cluster 2: 0, 3, 6 and 1, 1, 2.
  const std::vector<double> x = {4, -1, 1, -1, 10, -1, 2, -1, 7, 7, 6, 1, 0, 2, 3, 1};
  const std::vector<double> r = {1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1};
  ClusterDispersion<double> dispersion(3, 2);
  dispersion.measure(rows_of(x.data(), 8, 2), rows_of(r.data(), 8, 3), DispersionMeasure::iqr);
  check_near(dispersion.values(), {5.5 - 1.75, 0, 0, 0, 4.5 - 1.5, 1.5 - 1});
  dispersion.measure(rows_of(x.data(), 8, 2), rows_of(r.data(), 8, 3), DispersionMeasure::mad);
  check_near(dispersion.values(), {(3.25 + 2.25 + 0.25 + 5.75) / 4, 0, 0, 0, 2, 4.0 / 9});
}

}  // namespace moelab::cluster_weights_test
