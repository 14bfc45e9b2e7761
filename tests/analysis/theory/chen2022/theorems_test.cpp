#include <doctest/doctest.h>

#include <numeric>

#include "analysis/theory/chen2022.h"

namespace moelab::chen2022_theorems_test {

const CheckEffort kEffort;

TEST_CASE("theorem 4.1: a single expert errs on every quadruple; routed experts do not") {
  CHECK(verdict_of(check_quadruples(kEffort)) == CheckVerdict::holds);
  const CheckFinding routed = check_quadruples(kEffort, draw_routed_experts);
  CHECK(verdict_of(routed) == CheckVerdict::fails);
  CHECK(routed.measured < 0.01);  // noise alone decides
}

TEST_CASE("choice probabilities by hand") {
  const std::vector<double> equal = choice_probabilities({0.3, 0.3, 0.3});
  for (const double p : equal) CHECK(p == doctest::Approx(1.0 / 3).epsilon(1e-14));
  // Two scores that are δ apart: 1 − (1 − δ)²/2 for the larger one.
  CHECK(choice_probabilities({0.4, 0})[0] == doctest::Approx(1 - 0.36 / 2).epsilon(1e-14));
  CHECK(choice_probabilities({1.5, 0})[0] == doctest::Approx(1).epsilon(1e-14));
  CHECK(choice_probabilities({1.5, 0})[1] == 0);
  const std::vector<double> ten = choice_probabilities({0, .1, .2, .3, .4, .5, .55, .6, .65, .7});
  CHECK(std::accumulate(ten.begin(), ten.end(), 0.0) == doctest::Approx(1).epsilon(1e-13));
}

TEST_CASE("lemma 5.1: the constant 2 is enough, and 1.9 is not") {
  CHECK(verdict_of(check_choice_constant(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_choice_constant(kEffort, 1.9)) == CheckVerdict::fails);
}

}  // namespace moelab::chen2022_theorems_test
