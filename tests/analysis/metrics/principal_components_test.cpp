#include <doctest/doctest.h>

#include <Eigen/SVD>

#include "analysis/metrics/geometry.h"
#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::principal_components_test {
namespace {

/// Rounding of sums over a hundred rows of order one.
constexpr double kRounding = 1e-12;

}  // namespace

TEST_CASE("principal components by hand: rows on a line") {
  // −(3, 4), 0, 2 (3, 4) away from (1, 1); the direction is (.6, .8), the mean at 1/3 of it.
  const Matrix x = Matrix{{-2.0, -3.0}, {1.0, 1.0}, {7.0, 9.0}};
  const PrincipalComponents found = principal_components(x, 2);
  const double mean = 5.0 / 3;
  CHECK(found.coordinates.col(0).isApprox(Vector{{-5 - mean, -mean, 10 - mean}}, kRounding));
  CHECK(found.coordinates.col(1).norm() < kRounding * 10);
  CHECK(found.variance_share[0] == doctest::Approx(1).epsilon(kRounding));
  // The sign follows the largest entry, not the order of the rows.
  CHECK(principal_components(x.colwise().reverse(), 1)
            .coordinates.isApprox(Vector{{10 - mean, -mean, -5 - mean}}, kRounding));
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
    CHECK(std::min((column - expected).norm(), (column + expected).norm()) < kRounding * size);
    CHECK(found.variance_share[k] == doctest::Approx(size * size / centred.squaredNorm()).epsilon(kRounding));
  }
  CHECK((found.coordinates.transpose() * found.coordinates)(0, 1) == doctest::Approx(0).epsilon(kRounding));
}

TEST_CASE("rows without variance have no share; wrong numbers of components are refused") {
  const Matrix x = Matrix::Ones(4, 2);
  CHECK(principal_components(x, 2).variance_share == Vector::Zero(2));
  CHECK_THROWS_AS(principal_components(x, 0), InvalidOption);
  CHECK_THROWS_AS(principal_components(x, 3), InvalidOption);
  CHECK_THROWS_AS(principal_components(Matrix(0, 2), 1), InvalidOption);
}

}  // namespace moelab::principal_components_test
