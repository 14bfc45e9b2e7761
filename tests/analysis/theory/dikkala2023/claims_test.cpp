#include <doctest/doctest.h>

#include <limits>

#include "analysis/theory/dikkala2023.h"

namespace moelab::theory_claims_test {
namespace {

const CheckEffort kEffort;

/// One instance in three has q' with the wrong sign.
RouterMoments sometimes_wrong(const TwoComponentPopulation& population, double signal, double norm) {
  RouterMoments moments = exact_moments(population, signal, norm);
  if (population.problem().mean.size() % 3 == 0) {
    moments.dq = -moments.dq;
    moments.t_dq = -moments.t_dq;
  }
  return moments;
}

}  // namespace

TEST_CASE("the routing function has the derivative (1 - q^2)/2 with the sign of the loss only") {
  CHECK(verdict_of(check_routing_derivative(routing_function)) == CheckVerdict::holds);
  CHECK(verdict_of(check_routing_derivative(routing_function_as_printed)) == CheckVerdict::fails);
  CHECK(routing_function(1.0) == doctest::Approx(-routing_function_as_printed(1.0)));
}

TEST_CASE("claims 1 to 3 hold, and fail with the sign slip") {
  CHECK(verdict_of(check_claim1(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_claim1(kEffort, moments_as_printed)) == CheckVerdict::fails);
  CHECK(verdict_of(check_claim2(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_claim2(kEffort, moments_as_printed)) == CheckVerdict::fails);
  CHECK(verdict_of(check_claim3(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_claim3(kEffort, 0, moments_as_printed)) == CheckVerdict::fails);
}

TEST_CASE("claims 2 and 3 fail when some instances are wrong") {
  CHECK(verdict_of(check_claim2(kEffort, sometimes_wrong)) == CheckVerdict::fails);
  CHECK(verdict_of(check_claim3(kEffort, 0, sometimes_wrong)) == CheckVerdict::fails);
}

TEST_CASE("claim 3 is not made for whole Gaussians, where it is sometimes wrong") {
  const CheckFinding finding = check_claim3(kEffort, std::numeric_limits<double>::infinity());
  CHECK(verdict_of(finding) == CheckVerdict::hypotheses_not_met);
  CHECK(finding.measured < 1);
  CHECK(finding.measured > 0.5);
}

TEST_CASE("an equality is no strict inequality") {
  // A routing function that is constant: E[q' q] E[q] = E[q²] E[q'].
  const MomentRule constant = [](const TwoComponentPopulation&, double, double) {
    return RouterMoments{0.5, 0.25, 0.375, 0.1875, 0, 0};
  };
  CHECK(verdict_of(check_claim2(kEffort, constant)) == CheckVerdict::fails);
}

}  // namespace moelab::theory_claims_test
