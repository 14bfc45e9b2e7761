#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "analysis/theory/latent_single_index2025.h"

namespace moelab::latent_single_index2025_test {
namespace {

const CheckEffort kEffort;

CheckVerdict verdict(const CheckFinding& finding) {
  return verdict_of(finding);
}

}  // namespace

TEST_CASE("Hermite coefficients of the ReLU have their closed form") {
  const double b = 0.4, density = std::exp(-b * b / 2) / std::sqrt(2 * std::numbers::pi);
  CHECK(hermite_coefficient(1, b) == doctest::Approx(std::erfc(-b / std::numbers::sqrt2) / 2));
  CHECK(hermite_coefficient(2, b) == doctest::Approx(density / std::sqrt(2.0)));
  CHECK(hermite_coefficient(3, b) == doctest::Approx(-b * density / std::sqrt(6.0)));
}

TEST_CASE("the correlation of a neuron follows its law, not without the shift or the signs") {
  CHECK(verdict(check_cancellation(kEffort)) == CheckVerdict::holds);
  const CorrelationLaw unshifted = [](SingleIndexOptions options, const SingleIndexDirections& directions,
                                      const Vector& w, double bias) {
    options.mean_norm = 0;
    return correlation_law(options, directions, w, bias);
  };
  CHECK(verdict(check_cancellation(kEffort, unshifted)) == CheckVerdict::fails);
  const CorrelationLaw no_cancellation =
      [](SingleIndexOptions options, const SingleIndexDirections& directions, const Vector& w, double bias) {
        options.signs = {1, 1};
        return correlation_law(options, directions, w, bias);
      };
  CHECK(verdict(check_cancellation(kEffort, no_cancellation)) == CheckVerdict::fails);
}

TEST_CASE("the global signal is of first order with slope sqrt(i + 1)") {
  CHECK(verdict(check_first_order()) == CheckVerdict::holds);
  CHECK(verdict(check_first_order([](int degree) { return std::sqrt(double(degree)); })) ==
        CheckVerdict::fails);
}

}  // namespace moelab::latent_single_index2025_test
