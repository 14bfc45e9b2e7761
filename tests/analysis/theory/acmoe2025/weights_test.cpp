#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/acmoe2025.h"

namespace moelab::weights_test {
namespace {

const CheckEffort kEffort;

Vector inverse_at_any_lambda(const Vector& dispersion, double) {
  return dispersion.cwiseInverse() / dispersion.cwiseInverse().sum();
}

/// λ in place of λ/d.
Vector without_dimension(const Vector& dispersion, double lambda) {
  return optimal_weights(dispersion, lambda * static_cast<double>(dispersion.size()));
}

}  // namespace

TEST_CASE("the minimiser over the simplex by hand") {
  // s = (1, 3), λ = 2: w_1 = 1/√2.
  const SimplexMinimum minimum = minimise_over_simplex(Vector{{1.0, 3.0}}, 2);
  CHECK(std::abs(minimum.weights[0] - 1 / std::sqrt(2.0)) < 1e-10);
  CHECK(std::abs(minimum.weights.sum() - 1) < 1e-14);
}

TEST_CASE("theorem 1: the weights minimise; 1/s, or lambda without d, does not") {
  CHECK(verdict_of(check_minimiser(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_minimiser(kEffort, inverse_at_any_lambda)) == CheckVerdict::fails);
  CHECK(verdict_of(check_minimiser(kEffort, without_dimension)) == CheckVerdict::fails);
}

TEST_CASE("theorem 1: of the roots the largest alone gives weights") {
  CHECK(verdict_of(check_root_choice(kEffort, largest_root)) == CheckVerdict::holds);
  CHECK(verdict_of(check_root_choice(kEffort, every_root)) == CheckVerdict::fails);
  const auto smallest = [](int j, int) { return j == 0; };
  CHECK(verdict_of(check_root_choice(kEffort, smallest)) == CheckVerdict::fails);
}

TEST_CASE("theorem 1: inverse weights at one lambda only; the limits") {
  CHECK(verdict_of(check_inverse_weights(kEffort)) == CheckVerdict::holds);
  const auto slightly_off = [](const Vector& s) { return harmonic_lambda(s) * (1 + 1e-9); };
  CHECK(verdict_of(check_inverse_weights(kEffort, slightly_off)) == CheckVerdict::fails);
  CHECK(verdict_of(check_large_lambda(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_large_lambda(kEffort, without_dimension)) == CheckVerdict::fails);
  CHECK(verdict_of(check_small_lambda(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_small_lambda(kEffort, without_dimension)) == CheckVerdict::fails);
}

TEST_CASE("lemma 3: roots by hand, distinct and tied") {
  // s = (1, 3), λ = 2: α = −1 ± √2.
  const Vector distinct = weight_equation_roots(Vector{{1.0, 3.0}}, 2);
  REQUIRE(distinct.size() == 2);
  CHECK(std::abs(distinct[0] + 1 + std::sqrt(2.0)) < 1e-14);
  CHECK(std::abs(distinct[1] + 1 - std::sqrt(2.0)) < 1e-14);
  // s = (2, 2, 2): 3/(2 + α) = 3/λ alone.
  const Vector tied = weight_equation_roots(Vector{{2.0, 2.0, 2.0}}, 5);
  REQUIRE(tied.size() == 1);
  CHECK(std::abs(tied[0] - 3) < 1e-14);
}

TEST_CASE("lemma 3 fails with ties as printed; corrected it holds, and sees roots missed or misplaced") {
  CHECK(verdict_of(check_root_count(kEffort, true)) == CheckVerdict::fails);
  CHECK(verdict_of(check_root_count(kEffort, false)) == CheckVerdict::holds);
  const auto one_missed = [](const Vector& s, double lambda) -> Vector {
    const Vector roots = weight_equation_roots(s, lambda);
    return roots.tail(roots.size() - 1);
  };
  CHECK(verdict_of(check_root_count(kEffort, false, one_missed)) == CheckVerdict::fails);
  const auto left_of_poles = [](const Vector& s, double lambda) -> Vector {
    return weight_equation_roots(s, lambda).array() - 1;
  };
  CHECK(verdict_of(check_root_count(kEffort, false, left_of_poles)) == CheckVerdict::fails);
}

}  // namespace moelab::weights_test
