#include "analysis/metrics/geometry.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/feature_weights.h"
#include "tests/analysis/metrics/geometry_reference.h"

namespace moelab::geometry_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Matrix> square_matrices(const std::vector<double>& values) {
  std::vector<Matrix> matrices;
  constexpr int size = reference::dim * reference::dim;
  for (std::size_t begin = 0; begin < values.size(); begin += size)
    matrices.emplace_back(MatrixView(values.data() + begin, reference::dim, reference::dim));
  return matrices;
}

GaussianClusters reference_clusters() {
  return {view(reference::means, reference::clusters, reference::dim),
          square_matrices(reference::covariances)};
}

/// Two clusters that are wide along the first axis, apart along the second.
GaussianClusters flat_pair() {
  const Matrix covariance = Vector{{16.0, 1.0}}.asDiagonal();
  return {Matrix{{0.0, 0.0}, {0.0, 4.0}}, {covariance, covariance}};
}

}  // namespace

TEST_CASE("separation and mis-assignment agree with NumPy and SciPy") {
  const GaussianClusters clusters = reference_clusters();
  const GaussianClusters noisy = contaminated(clusters, square_matrices(reference::noise).front());
  const Metrics metrics = square_matrices(reference::metrics);
  const Metrics euclidean = euclidean_metrics(clusters);

  const Separation plain = minimum_separation(clusters, euclidean);
  CHECK(std::abs(plain.value - reference::separation_euclidean) < kRounding);
  CHECK(std::min(plain.from, plain.to) == reference::nearest_euclidean[0]);
  CHECK(std::max(plain.from, plain.to) == reference::nearest_euclidean[1]);
  const Separation weighted = minimum_separation(clusters, metrics);
  CHECK(std::abs(weighted.value - reference::separation_metric) < kRounding);
  CHECK(weighted.from == reference::nearest_metric[0]);
  CHECK(weighted.to == reference::nearest_metric[1]);

  CHECK(difference(pairwise_misassignment(noisy, euclidean),
                   view(reference::misassignment_euclidean, reference::clusters, reference::clusters)) <
        kRounding);
  CHECK(difference(pairwise_misassignment(noisy, metrics),
                   view(reference::misassignment_metric, reference::clusters, reference::clusters)) <
        kRounding);
}

TEST_CASE("separation by hand: the metric takes the width out, its scale cancels") {
  const GaussianClusters clusters = flat_pair();
  // 4 / √(2 · 16), and with M = diag(1/16, 1) the width is 1 on both axes: 4 / √2.
  CHECK(std::abs(minimum_separation(clusters, euclidean_metrics(clusters)).value - 1 / std::sqrt(2.0)) <
        kLastBits);
  for (const double scale : {1.0, 1e-6, 1e6}) {
    const Matrix weights = scale * Matrix{{1.0 / 16, 1.0}, {1.0 / 16, 1.0}};
    CHECK(std::abs(minimum_separation(clusters, diagonal_metrics(weights)).value - std::sqrt(8.0)) < 1e-13);
  }
  GaussianClusters points = clusters;
  for (Matrix& covariance : points.covariances) covariance.setZero();
  CHECK(minimum_separation(points, euclidean_metrics(points)).value == kInfinity);
}

TEST_CASE("each cluster measures with its own metric") {
  const GaussianClusters clusters = flat_pair();
  // M_1 = I, M_2 sees the first axis alone, on which the means coincide.
  const Metrics metrics = diagonal_metrics(Matrix{{1.0, 1.0}, {1.0, 0.0}});
  const Separation nearest = minimum_separation(clusters, metrics);
  CHECK(nearest.value == 0);
  CHECK(nearest.from == 1);
  const Matrix pairwise = pairwise_misassignment(clusters, metrics);
  CHECK(pairwise(1, 0) == 0.5);
  // Two standard deviations of 1 to the boundary.
  CHECK(std::abs(pairwise(0, 1) - std::erfc(std::sqrt(2.0)) / 2) < kLastBits);
  const WorstPair worst = worst_pair(pairwise);
  CHECK(worst.probability == 0.5);
  CHECK(worst.from == 1);
  CHECK(worst.to == 0);
}

TEST_CASE("mis-assignment by hand, and its limits") {
  const Vector delta{{2.0, 0.0}};
  const Matrix identity = Matrix::Identity(2, 2);
  // 1 − Φ(1).
  CHECK(std::abs(misassignment_probability(delta, identity, identity) - 0.15865525393145705) < kLastBits);
  CHECK(misassignment_probability(delta, Matrix::Zero(2, 2), identity) == 0);
  CHECK(misassignment_probability(Vector::Zero(2), identity, identity) == 0.5);
  // The scale of the metric cancels.
  CHECK(std::abs(boundary_distance(delta, identity, 1e6 * identity) - 1) < kLastBits);
  const Matrix pairwise{{0.0, 0.1, 0.2}, {0.7, 0.0, 0.6}, {0.0, 0.0, 0.0}};
  const Vector bounds = union_bounds(pairwise);
  CHECK(std::abs(bounds[0] - 0.3) < kLastBits);
  CHECK(bounds[1] == 1);
  CHECK(bounds[2] == 0);
}

TEST_CASE("drawn mis-assignment meets a square of four means exactly known") {
  // Means (±1, ±1), Σ = I: right where both coordinates keep their sign, (1 − Φ(−1))².
  GaussianClusters clusters{Matrix{{1.0, 1.0}, {1.0, -1.0}, {-1.0, 1.0}, {-1.0, -1.0}}, {}};
  clusters.covariances.assign(4, Matrix::Identity(2, 2));
  const Metrics metrics = euclidean_metrics(clusters);
  const double one_side = 0.15865525393145705;
  const double truth = 1 - (1 - one_side) * (1 - one_side);
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  const DrawnShare share = drawn_misassignment(clusters, metrics, 3, 40000, engine);
  CHECK(std::abs(share.value - truth) < 4 * share.standard_error);
  // Wrong on purpose: the union bound, and the largest pair, miss by more.
  const Matrix pairwise = pairwise_misassignment(clusters, metrics);
  CHECK(std::abs(share.value - union_bounds(pairwise)[3]) > 4 * share.standard_error);
  CHECK(std::abs(share.value - pairwise.row(3).maxCoeff()) > 4 * share.standard_error);
  CHECK(pairwise.row(3).maxCoeff() < truth);
  CHECK(union_bounds(pairwise)[3] > truth);
  // A share of zero has an error.
  clusters.means *= 100;
  const DrawnShare none = drawn_misassignment(clusters, metrics, 0, 98, engine);
  CHECK(none.value == 0);
  CHECK(none.standard_error == doctest::Approx(std::sqrt(0.01 * 0.99 / 98)));
}

TEST_CASE("condition numbers agree with NumPy, and by hand") {
  const Matrix covariance = square_matrices(reference::covariances).front();
  const Vector weights = Eigen::Map<const Vector>(reference::weights.data(), reference::dim);
  CHECK(std::abs(conditioning(covariance).condition - reference::condition) < kRounding);
  CHECK(std::abs(conditioning(transformed_covariance(covariance, weights)).condition -
                 reference::condition_transformed) < kRounding);

  const Conditioning indefinite = conditioning(Matrix(Vector{{-8.0, 2.0, 4.0}}.asDiagonal()));
  CHECK(indefinite.condition == doctest::Approx(4));
  CHECK(indefinite.largest == doctest::Approx(4));
  CHECK(indefinite.smallest == doctest::Approx(-8));
  CHECK(indefinite.negative == 1);
  const Conditioning singular = conditioning(Matrix(Vector{{0.0, 1.0}}.asDiagonal()));
  CHECK(singular.condition == kInfinity);
  CHECK(singular.negative == 0);
  CHECK(conditioning(Matrix::Zero(2, 2)).condition == kInfinity);
  CHECK(conditioning(Matrix(Vector{{-1e-18, 1.0}}.asDiagonal())).negative == 0);
}

TEST_CASE("dispersions agree with NumPy, and by hand") {
  const MatrixView x = view(reference::x, reference::rows, reference::dim);
  CHECK(difference(mean_absolute_deviations(x, reference::labels, reference::clusters).values,
                   view(reference::deviations, reference::clusters, reference::dim)) < kRounding);
  CHECK(difference(variances(x, reference::labels, reference::clusters).values,
                   view(reference::variances_by_cluster, reference::clusters, reference::dim)) < kRounding);

  // Cluster 0: (0, 1, 5) and constants; cluster 1: one point; cluster 2: none.
  const Matrix points{{0.0, 0.1}, {9.0, 9.0}, {1.0, 0.1}, {5.0, 0.1}};
  const std::vector<int> labels = {0, 1, 0, 0};
  const DispersionTable table = mean_absolute_deviations(points, labels, 3);
  CHECK(table.counts == std::vector<int>{3, 1, 0});
  CHECK(difference(table.values, Matrix{{2.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}}) < kLastBits);
  CHECK(table.values(0, 1) == 0);  // although 3 · 0.1 / 3 is not 0.1
  CHECK(difference(variances(points, labels, 3).values, Matrix{{14.0 / 3, 0.0}, {0.0, 0.0}, {0.0, 0.0}}) <
        kLastBits);
  // M = I for what has no dispersion.
  const auto inverse = [](std::span<const double> s) { return inverse_dispersion_weights(s); };
  CHECK(difference(feature_weights(table, inverse), Matrix::Ones(3, 2)) < kLastBits);
}

TEST_CASE("feature weights go row by row") {
  const DispersionTable table{Matrix{{1.0, 3.0}, {0.0, 0.0}}, {5, 0}};
  const auto inverse = [](std::span<const double> s) { return inverse_dispersion_weights(s); };
  CHECK(difference(feature_weights(table, inverse), Matrix{{1.5, 0.5}, {1.0, 1.0}}) < kLastBits);
  const auto optimal = [](std::span<const double> s) { return optimal_feature_weights(s, 1.5); };
  CHECK(difference(feature_weights(table, optimal), Matrix{{0.75, 0.25}, {0.5, 0.5}}) < kLastBits);
}

TEST_CASE("shapes and values that do not fit are named") {
  const GaussianClusters clusters = flat_pair();
  const Metrics metrics = euclidean_metrics(clusters);
  CHECK_THROWS_AS(minimum_separation(clusters, Metrics(1, Matrix::Identity(2, 2))), InvalidOption);
  CHECK_THROWS_AS(minimum_separation(clusters, Metrics(2, Matrix::Identity(3, 3))), InvalidOption);
  CHECK_THROWS_AS(minimum_separation({clusters.means, {}}, metrics), InvalidOption);
  const GaussianClusters one{Matrix::Zero(1, 2), {Matrix::Identity(2, 2)}};
  CHECK_THROWS_AS(minimum_separation(one, euclidean_metrics(one)), InvalidOption);
  CHECK_THROWS_AS(worst_pair(Matrix::Zero(1, 1)), InvalidOption);
  CHECK_THROWS_AS(minimum_separation(clusters, diagonal_metrics(Matrix{{1.0, 1.0}, {1.0, -1.0}})),
                  InvalidOption);
  CHECK_THROWS_AS(pairwise_misassignment(clusters, {}), InvalidOption);
  CHECK_THROWS_AS(contaminated(clusters, Matrix::Identity(3, 3)), InvalidOption);
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  CHECK_THROWS_AS(drawn_misassignment(clusters, metrics, 2, 10, engine), InvalidOption);
  CHECK_THROWS_AS(drawn_misassignment(clusters, metrics, 0, 0, engine), InvalidOption);
  CHECK_THROWS_AS(conditioning(Matrix::Zero(2, 3)), InvalidOption);
  CHECK_THROWS_AS(conditioning(Matrix()), InvalidOption);
  CHECK_THROWS_AS(variances(Matrix::Zero(2, 1), std::vector<int>{0}, 1), InvalidOption);
  CHECK_THROWS_AS(variances(Matrix::Zero(1, 1), std::vector<int>{1}, 1), InvalidOption);
}

}  // namespace moelab::geometry_test
