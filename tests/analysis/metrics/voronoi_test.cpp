#include "analysis/metrics/voronoi.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "sim/base/error.h"

namespace moelab::voronoi_test {
namespace {

/// Sums of a dozen terms of order one, rounded in double.
constexpr double kRounding = 1e-13;

/// Components on a line: (g, a, b) of each, in which a common shift of g changes nothing.
MixtureComponents on_a_line(const std::vector<std::array<double, 3>>& places,
                            const std::vector<double>& weights) {
  const Eigen::Index count = static_cast<Eigen::Index>(places.size());
  MixtureComponents all{Matrix(count, 1), Vector(count), Matrix(count, 1), Vector(count), 1};
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto& [gate, slope, intercept] = places[static_cast<std::size_t>(i)];
    all.gate(i, 0) = gate;
    all.slope(i, 0) = slope;
    all.intercept[i] = intercept;
    all.weight[i] = weights[static_cast<std::size_t>(i)];
  }
  return all;
}

const MixtureComponents kTruth = on_a_line({{0, 0, 0}, {10, 5, 0}}, {0.5, 0.5});

bool is_close(double value, double expected) {
  return std::abs(value - expected) <= kRounding;
}

TEST_CASE("one fit in each cell, by hand") {
  // Δg = ∓0.1 around the common shift, Δa = 0.2 and 0, Δb = 0 and −0.4; weights 0.25 and 0.75.
  const VoronoiErrors errors =
      voronoi_errors(on_a_line({{10.1, 5, -0.4}, {-0.1, 0.2, 0}}, {0.25, 0.75}), kTruth, false);
  CHECK(errors.cells == std::vector<int>{1, 0});
  // The shift is −(0.25 · 0.1 − 0.75 · 0.1) = 0.05: Δg = 0.15 and −0.05.
  CHECK(is_close(errors.loss_exact, 0.25 * (0.15 + 0.4) + 0.75 * (0.05 + 0.2)));
  CHECK(errors.loss_over == 0);
  CHECK(is_close(errors.weight_error, 0.5));
  CHECK(is_close(errors.loss, errors.loss_exact + errors.weight_error));
  CHECK(errors.empty_cells == 0);
  REQUIRE(errors.exact);
  CHECK_FALSE(errors.over);
  CHECK(is_close(errors.exact->gate, std::sqrt(0.25 * 0.15 * 0.15 + 0.75 * 0.05 * 0.05)));
  CHECK(is_close(errors.exact->slope, std::sqrt(0.75) * 0.2));
  CHECK(is_close(errors.exact->intercept, std::sqrt(0.25) * 0.4));
  CHECK(is_close(errors.exact->expert, std::sqrt(0.75 * 0.04 + 0.25 * 0.16)));
}

TEST_CASE("directions and lengths apart, and every fit alike where it is not weighted, by hand") {
  // g* = (3, 4) is met as (0, 10): Δ(g/‖g‖) = (−0.6, 0.2), Δ‖g‖ = 5; the other, (0, 1), with no error but 0.8
  // in b.
  MixtureComponents truth{Matrix(2, 2), Vector::Constant(2, 0.5), Matrix::Zero(2, 2), Vector::Zero(2), 0};
  truth.gate << 3, 4, 0, 1;
  truth.slope << 20, 0, 0, 20;
  MixtureComponents fitted = truth;
  fitted.gate.row(0) << 0, 10;
  fitted.intercept[1] = 0.8;
  fitted.weight << 0.25, 0.75;
  const VoronoiErrors errors = voronoi_errors(fitted, truth, false);
  CHECK(errors.cells == std::vector<int>{0, 1});
  CHECK(is_close(errors.exact->direction, std::sqrt(0.25 * 0.4)));
  CHECK(is_close(errors.exact->length, std::sqrt(0.25 * 25)));
  CHECK(is_close(errors.exact->gate, std::sqrt(0.25 * 45)));
  CHECK(is_close(errors.exact_unweighted->direction, std::sqrt(0.4 / 2)));
  CHECK(is_close(errors.exact_unweighted->length, std::sqrt(25.0 / 2)));
  CHECK(is_close(errors.exact_unweighted->intercept, std::sqrt(0.64 / 2)));
  CHECK_FALSE(errors.over_unweighted);
}

TEST_CASE("only the columns that may shift do") {
  MixtureComponents truth{Matrix::Zero(2, 2), Vector::Constant(2, 0.5), Matrix(2, 1), Vector::Zero(2), 1};
  truth.slope << 0, 9;
  MixtureComponents fitted = truth;
  fitted.gate.col(0).array() += 4;
  CHECK(is_close(voronoi_errors(fitted, truth, false).loss, 0));
  fitted.gate.col(1).array() += 0.5;
  CHECK(is_close(voronoi_errors(fitted, truth, false).loss, 0.5));
}

TEST_CASE("two fits in a cell count with power two, by hand") {
  // Fits 0 and 1 share the first component, ∓0.2 in g and 0.3 in b; the third is exact. The shift is 0.
  const VoronoiErrors errors = voronoi_errors(
      on_a_line({{-0.2, 0, 0.3}, {0.2, 0, 0.3}, {10, 5, 0}}, {0.25, 0.25, 0.5}), kTruth, false);
  CHECK(errors.cells == std::vector<int>{0, 0, 1});
  CHECK(errors.loss_exact <= kRounding);
  CHECK(is_close(errors.loss_over, 0.5 * (0.04 + 0.09)));
  CHECK(errors.weight_error <= kRounding);
  REQUIRE(errors.over);
  CHECK(is_close(errors.over->gate, 0.2));
  CHECK(errors.over->slope <= kRounding);
  CHECK(is_close(errors.over->intercept, 0.3));
  CHECK(is_close(errors.over->expert, 0.3));
}

TEST_CASE("a component without a fit is told, and its weight is missing") {
  const VoronoiErrors errors =
      voronoi_errors(on_a_line({{0, 0.1, 0}, {0, -0.1, 0}}, {0.5, 0.5}), kTruth, false);
  CHECK(errors.cells == std::vector<int>{0, 0});
  CHECK(errors.empty_cells == 1);
  CHECK(is_close(errors.weight_error, 1));
  CHECK(is_close(errors.loss, 0.01 + 1));
  CHECK_FALSE(errors.exact);
}

TEST_CASE("labels and common shifts of directions change nothing; a shift of one direction does") {
  const MixtureComponents fitted = on_a_line({{0.3, -0.1, 0.2}, {9.9, 5.2, 0}}, {0.4, 0.6});
  const VoronoiErrors before = voronoi_errors(fitted, kTruth, false);
  MixtureComponents moved = on_a_line({{9.9, 5.2, 0}, {0.3, -0.1, 0.2}}, {0.6, 0.4});
  moved.gate.array() -= 20;
  const VoronoiErrors after = voronoi_errors(moved, kTruth, false);
  CHECK(is_close(after.loss, before.loss));
  CHECK(is_close(after.exact->gate, before.exact->gate));
  CHECK(after.cells == std::vector<int>{1, 0});
  moved.gate(0, 0) += 0.5;
  CHECK_FALSE(is_close(voronoi_errors(moved, kTruth, false).loss, before.loss));
}

TEST_CASE("of an even power the sign of (a, b) is free") {
  const MixtureComponents fitted = on_a_line({{0, 0.1, 0}, {10, -5, -0.2}}, {0.5, 0.5});
  CHECK(is_close(voronoi_errors(fitted, kTruth, true).exact->slope, std::sqrt(0.5) * 0.1));
  CHECK(is_close(voronoi_errors(fitted, kTruth, true).exact->intercept, std::sqrt(0.5) * 0.2));
  CHECK(voronoi_errors(fitted, kTruth, false).loss > 1);
}

TEST_CASE("parameters without a finite cost have cells, and no finite loss") {
  for (const double far : {1e200, std::nan("")}) {
    const VoronoiErrors errors =
        voronoi_errors(on_a_line({{0, far, 0}, {10, far, 0}}, {0.5, 0.5}), kTruth, false);
    CHECK(errors.cells.size() == 2);
    CHECK_FALSE(std::isfinite(errors.loss));
  }
}

TEST_CASE("every fit lies in the cell of its nearest component") {
  // A common shift larger than the distances: without it the nearest components would all be the second.
  const MixtureComponents fitted = on_a_line({{10.2, 0.1, 0}, {20, 5, 0.1}, {20.4, 4.9, 0}}, {0.5, 0.3, 0.2});
  const VoronoiErrors errors = voronoi_errors(fitted, kTruth, false);
  CHECK(errors.cells == std::vector<int>{0, 1, 1});
  CHECK(errors.over->gate < 0.3);
}

TEST_CASE("more maps than can be compared are refused") {
  const MixtureComponents many =
      on_a_line(std::vector<std::array<double, 3>>(20, {0, 0, 0}), std::vector<double>(20, 1));
  CHECK_NOTHROW(voronoi_errors(on_a_line({{0, 0, 0}}, {1}), many, false));
  CHECK_THROWS_AS(voronoi_errors(many, kTruth, false), InvalidOption);
}

}  // namespace

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

}  // namespace moelab::voronoi_test
