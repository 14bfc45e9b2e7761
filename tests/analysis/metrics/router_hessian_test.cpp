#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "analysis/metrics/geometry.h"
#include "sim/base/error.h"
#include "tests/analysis/metrics/geometry_reference.h"

namespace moelab::router_hessian_test {
namespace {

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

}  // namespace

TEST_CASE("the router's Hessian agrees with PyTorch, exact and Gauss-Newton") {
  const MixtureSamples batch = reference_batch();
  constexpr int size = reference::experts * reference::dim;
  const Matrix exact = router_hessian(batch, RouterCurvature::exact);
  const Matrix gauss_newton = router_hessian(batch, RouterCurvature::gauss_newton);
  CHECK(difference(exact, view(reference::hessian, size, size)) < kRounding);
  CHECK(difference(gauss_newton, view(reference::gauss_newton, size, size)) < kRounding);
  // They do differ: one in place of the other would be seen.
  CHECK(difference(exact, gauss_newton) > 0.1);

  const Conditioning restricted = conditioning(without_common_shift(exact, reference::experts));
  CHECK(std::abs(restricted.condition - reference::hessian_condition) < kRounding);
  CHECK(restricted.negative == reference::hessian_negative);
  CHECK(conditioning(without_common_shift(gauss_newton, reference::experts)).negative == 0);
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
    // The one direction that counts is (e_1 − e_2)/√2, with twice the curvature of a row.
    CHECK(difference(without_common_shift(exact, 2), 2 * expert_block(exact, 2, 0)) < kLastBits);
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
  CHECK_THROWS_AS(without_common_shift(Matrix::Zero(4, 4), 3), InvalidOption);
}

}  // namespace moelab::router_hessian_test
