#include <doctest/doctest.h>

#include <cmath>

#include "analysis/metrics/voronoi.h"

namespace moelab::gaussian_errors_test {
namespace {

TEST_CASE("the loss of Gaussian experts by hand: powers by the fits of a cell") {
  // Components at (g, a, b) = (0, 0, 0) and (10, 5, 0), variances 1 and 2; no common shift.
  MixtureComponents truth{Matrix(2, 1), Vector::Constant(2, 0.5), Matrix(2, 1), Vector::Zero(2), 0};
  truth.gate << 0, 10;
  truth.slope << 0, 5;
  const Vector variances = (Vector(2) << 1, 2).finished();
  MixtureComponents fitted{Matrix(3, 1), Vector(3), Matrix(3, 1), Vector(3), 0};
  fitted.gate << -0.5, 0.5, 10.2;
  fitted.weight << 0.25, 0.25, 0.5;
  fitted.slope << 0.3, -0.3, 5;
  fitted.intercept << 0, 0.4, -0.1;
  const Vector found_variances = (Vector(3) << 1.2, 0.8, 2.3).finished();
  const GaussianErrors errors =
      gaussian_errors(fitted, found_variances, truth, variances, voronoi_errors(fitted, truth, false));
  const double over = 0.25 * (std::pow(0.5, 4) + 0.3 * 0.3 + 0.2 * 0.2) +
                      0.25 * (std::pow(0.5, 4) + std::pow(0.4, 4) + 0.3 * 0.3 + 0.2 * 0.2);
  REQUIRE(errors.loss);
  CHECK(*errors.loss == doctest::Approx(over + 0.5 * (0.2 + 0.1 + 0.3)).epsilon(1e-12));
  CHECK(*errors.exact == doctest::Approx(0.3).epsilon(1e-12));
  CHECK(*errors.over == doctest::Approx(0.2).epsilon(1e-12));
}

TEST_CASE("of four fits in a cell the order is not known") {
  MixtureComponents truth{Matrix::Zero(1, 1), Vector::Ones(1), Matrix::Zero(1, 1), Vector::Zero(1), 0};
  const MixtureComponents fitted{Matrix::Zero(4, 1), Vector::Constant(4, 0.25), Matrix::Zero(4, 1),
                                 Vector::Zero(4), 0};
  const GaussianErrors errors =
      gaussian_errors(fitted, Vector::Ones(4), truth, Vector::Ones(1), voronoi_errors(fitted, truth, false));
  CHECK_FALSE(errors.loss);
  CHECK_FALSE(errors.exact);
  CHECK(*errors.over == 0);
}

}  // namespace
}  // namespace moelab::gaussian_errors_test
