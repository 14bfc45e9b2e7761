#include "analysis/metrics/geometry.h"

#include <doctest/doctest.h>

#include <Eigen/SVD>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/base/random.h"

namespace moelab::geometry_test {
namespace {

namespace reference {
#include "tests/analysis/metrics/geometry_reference.inc"
}

/// Eigenvalues and sums over a few hundred numbers of order 1 in double: rounding stays far below this.
constexpr double kRounding = 1e-10;
/// For hand-made cases with exact sums and one rounded root or quotient.
constexpr double kLastBits = 1e-14;

MatrixView view(const std::vector<double>& values, int rows, int columns) {
  return {values.data(), rows, columns};
}

/// The largest difference between entries, NaN where there is one.
double difference(const Matrix& left, const Matrix& right) {
  return (left - right).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

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

/// M_i = I.
Metrics euclidean_metrics(const GaussianClusters& clusters) {
  return Metrics(static_cast<std::size_t>(clusters.means.rows()),
                 Matrix::Identity(clusters.means.cols(), clusters.means.cols()));
}

/// Two clusters that are wide along the first axis, apart along the second.
GaussianClusters flat_pair() {
  const Matrix covariance = Vector{{16.0, 1.0}}.asDiagonal();
  return {Matrix{{0.0, 0.0}, {0.0, 4.0}}, {covariance, covariance}};
}

MixtureSamples reference_batch() {
  return {view(reference::features, reference::rows, reference::dim),
          view(reference::probabilities, reference::rows, reference::experts),
          view(reference::outputs, reference::rows, reference::experts * reference::outputs_dim),
          view(reference::targets, reference::rows, reference::outputs_dim)};
}

/// One sample z = (1, 2), r = (1/4, 3/4), outputs 4 and 0, so that f = 1; target y.
MixtureSamples one_sample(double target) {
  return {Matrix{{1.0, 2.0}}, Matrix{{0.25, 0.75}}, Matrix{{4.0, 0.0}}, Matrix{{target}}};
}

/// Rounding of sums over a hundred rows of order one.
constexpr double kSumRounding = 1e-12;

}  // namespace

TEST_CASE("mis-assignment agrees with NumPy and SciPy") {
  const GaussianClusters clusters = reference_clusters();
  const GaussianClusters noisy = contaminated(clusters, square_matrices(reference::noise).front());
  const Metrics metrics = square_matrices(reference::metrics);
  const Metrics euclidean = euclidean_metrics(clusters);

  CHECK(difference(pairwise_misassignment(noisy, euclidean),
                   view(reference::misassignment_euclidean, reference::clusters, reference::clusters)) <
        kRounding);
  CHECK(difference(pairwise_misassignment(noisy, metrics),
                   view(reference::misassignment_metric, reference::clusters, reference::clusters)) <
        kRounding);
}

TEST_CASE("each cluster measures with its own metric") {
  const GaussianClusters clusters = flat_pair();
  // M_1 = I, M_2 sees the first axis alone, on which the means coincide.
  const Metrics metrics = {Matrix::Identity(2, 2), Matrix{{1.0, 0.0}, {0.0, 0.0}}};
  const Matrix pairwise = pairwise_misassignment(clusters, metrics);
  CHECK(pairwise(1, 0) == 0.5);
  // Two standard deviations of 1 to the boundary.
  CHECK(std::abs(pairwise(0, 1) - std::erfc(std::sqrt(2.0)) / 2) < kLastBits);
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
  CHECK(difference(variances(x, reference::labels, reference::clusters).values,
                   view(reference::variances_by_cluster, reference::clusters, reference::dim)) < kRounding);

  // Cluster 0: (0, 1, 5) and constants; cluster 1: one point; cluster 2: none.
  const Matrix points{{0.0, 0.1}, {9.0, 9.0}, {1.0, 0.1}, {5.0, 0.1}};
  const std::vector<int> labels = {0, 1, 0, 0};
  const DispersionTable table = variances(points, labels, 3);
  CHECK(table.counts == std::vector<int>{3, 1, 0});
  CHECK(difference(table.values, Matrix{{14.0 / 3, 0.0}, {0.0, 0.0}, {0.0, 0.0}}) < kLastBits);
  CHECK(table.values(0, 1) == 0);  // although 3 · 0.1 / 3 is not 0.1
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

TEST_CASE("the router's Hessian agrees with PyTorch, exact and Gauss-Newton") {
  const MixtureSamples batch = reference_batch();
  constexpr int size = reference::experts * reference::dim;
  const Matrix exact = router_hessian(batch, RouterCurvature::exact);
  const Matrix gauss_newton = router_hessian(batch, RouterCurvature::gauss_newton);
  CHECK(difference(exact, view(reference::hessian, size, size)) < kRounding);
  CHECK(difference(gauss_newton, view(reference::gauss_newton, size, size)) < kRounding);
  // They do differ: one in place of the other would be seen.
  CHECK(difference(exact, gauss_newton) > 0.1);

  // Rows that all change alike change nothing.
  Matrix rows = Matrix::Zero(size, reference::dim);
  for (int e = 0; e < reference::experts; ++e)
    rows.middleRows(e * reference::dim, reference::dim).setIdentity();
  CHECK((exact * rows).cwiseAbs().maxCoeff() < kRounding);
}

TEST_CASE("the Hessian by hand for one sample and two experts") {
  // a = (3, −1): Gauss-Newton has B_11 = 2 · (1/4)² · 9 = 9/8. With ρ = f − y = 1 − y the rest of B_11 is
  // 2 r (1 − 2r) ρ a = 2 · 1/4 · 1/2 · 3 ρ = 3ρ/4.
  const Matrix square{{1.0, 2.0}, {2.0, 4.0}};
  for (const double target : {1.0, 3.0, -5.0}) {
    CAPTURE(target);
    const MixtureSamples batch = one_sample(target);
    const Matrix exact = router_hessian(batch, RouterCurvature::exact);
    const Matrix gauss_newton = router_hessian(batch, RouterCurvature::gauss_newton);
    CHECK(difference(expert_block(gauss_newton, 2, 0), 9.0 / 8 * square) < kLastBits);
    CHECK(difference(expert_block(exact, 2, 0), (9.0 / 8 + 0.75 * (1 - target)) * square) < kLastBits);
    // The scores' curvatures add up to 0 over experts: B_12 = −B_11, B_22 = B_11.
    CHECK(difference(exact.block(0, 2, 2, 2), -expert_block(exact, 2, 0)) < kLastBits);
    CHECK(difference(expert_block(exact, 2, 1), expert_block(exact, 2, 0)) < kLastBits);
  }
  // f = y: both agree. y = 3: 9/8 − 3/2 < 0, so that the exact one is indefinite.
  CHECK(difference(router_hessian(one_sample(1), RouterCurvature::exact),
                   router_hessian(one_sample(1), RouterCurvature::gauss_newton)) < kLastBits);
  CHECK(conditioning(router_hessian(one_sample(3), RouterCurvature::exact)).negative == 1);
}

TEST_CASE("the gradient by hand, and a gate that keeps the probabilities of the selected expert") {
  // ∂L/∂γ_e = 2 r_e ρ a_e = 2 · 1/4 · 2 · 3 = 3 for y = −1, times z.
  CHECK(difference(router_gradient(one_sample(-1)), Matrix{{3.0, 6.0}, {-3.0, -6.0}}) < kLastBits);
  // f = r_1 o_1 alone has the derivative r_1 (1 − r_1) o_1: the other expert counts with output 0.
  const double slope = 2 * (0.25 * 4 - 3) * 0.25 * 0.75 * 4;
  CHECK(difference(router_gradient(one_sample(3)).row(0), slope * Matrix{{1.0, 2.0}}) < kLastBits);
}

TEST_CASE("shapes that do not fit are named") {
  MixtureSamples batch = one_sample(0);
  batch.targets = Matrix::Zero(1, 2);
  CHECK_THROWS_AS(router_hessian(batch, RouterCurvature::exact), InvalidOption);
  batch = one_sample(0);
  batch.probabilities = Matrix::Ones(2, 2);
  CHECK_THROWS_AS(router_gradient(batch), InvalidOption);
  batch = {Matrix(0, 2), Matrix(0, 2), Matrix(0, 2), Matrix(0, 1)};
  CHECK_THROWS_AS(router_hessian(batch, RouterCurvature::exact), InvalidOption);
  CHECK_THROWS_AS(expert_block(Matrix::Zero(4, 4), 2, 2), InvalidOption);
  CHECK_THROWS_AS(expert_block(Matrix::Zero(5, 5), 2, 0), InvalidOption);
}

TEST_CASE("principal components by hand: rows on a line") {
  // −(3, 4), 0, 2 (3, 4) away from (1, 1); the direction is (0.6, 0.8), the mean at 1/3 of it.
  const Matrix x = Matrix{{-2.0, -3.0}, {1.0, 1.0}, {7.0, 9.0}};
  const PrincipalComponents found = principal_components(x, 2);
  const double mean = 5.0 / 3;
  CHECK(found.coordinates.col(0).isApprox(Vector{{-5 - mean, -mean, 10 - mean}}, kSumRounding));
  CHECK(found.coordinates.col(1).norm() < kSumRounding * 10);
  CHECK(found.variance_share[0] == doctest::Approx(1).epsilon(kSumRounding));
  // The sign follows the largest entry, not the order of the rows.
  CHECK(principal_components(x.colwise().reverse(), 1)
            .coordinates.isApprox(Vector{{10 - mean, -mean, -5 - mean}}, kSumRounding));
}

TEST_CASE("principal components agree with the singular values of the centred rows") {
  Engine engine(3);
  const Matrix x = draw_normals(engine, 100, 5) * draw_normals(engine, 5, 5);
  const PrincipalComponents found = principal_components(x, 3);
  const Matrix centred = x.rowwise() - x.colwise().mean();
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(centred, Eigen::ComputeThinU);
  for (Eigen::Index k = 0; k < 3; ++k) {
    const double size = svd.singularValues()[k];
    const Vector expected = size * svd.matrixU().col(k), column = found.coordinates.col(k);
    CHECK(std::min((column - expected).norm(), (column + expected).norm()) < kSumRounding * size);
    CHECK(found.variance_share[k] ==
          doctest::Approx(size * size / centred.squaredNorm()).epsilon(kSumRounding));
  }
  CHECK((found.coordinates.transpose() * found.coordinates)(0, 1) ==
        doctest::Approx(0).epsilon(kSumRounding));
}

TEST_CASE("rows without variance have no share; wrong numbers of components are refused") {
  const Matrix x = Matrix::Ones(4, 2);
  CHECK(principal_components(x, 2).variance_share == Vector::Zero(2));
  CHECK_THROWS_AS(principal_components(x, 0), InvalidOption);
  CHECK_THROWS_AS(principal_components(x, 3), InvalidOption);
  CHECK_THROWS_AS(principal_components(Matrix(0, 2), 1), InvalidOption);
}

}  // namespace moelab::geometry_test
