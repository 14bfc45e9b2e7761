#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/questions.h"

namespace moelab::questions_exact_test {
namespace {

const CheckEffort kEffort;

CheckVerdict verdict(const CheckFinding& finding) {
  return verdict_of(finding);
}

}  // namespace

TEST_CASE("loss-free balancing: the dual's slope and the swaps hold, with frozen scores and the right sign") {
  CHECK(verdict(check_dual_slope(kEffort)) == CheckVerdict::holds);
  CHECK(verdict(check_dual_slope(kEffort, -1)) == CheckVerdict::fails);
  CHECK(verdict(check_swaps(kEffort)) == CheckVerdict::holds);
  CHECK(verdict(check_swaps(kEffort, 0.2)) == CheckVerdict::fails);
}

TEST_CASE("balance within groups is global balance and a covariance, not so for mixed groups") {
  CHECK(verdict(check_group_covariance(kEffort)) == CheckVerdict::holds);
  CHECK(verdict(check_group_covariance(kEffort, "aux_mixed")) == CheckVerdict::fails);
  CHECK(verdict(check_group_covariance(kEffort, "aux")) == CheckVerdict::fails);
}

TEST_CASE("soft to hard: a target that jumps costs, a continuous one gains, and the two are not confused") {
  CHECK(verdict(check_soft_to_hard(Interface::jump, loss_at_jump)) == CheckVerdict::holds);
  CHECK(verdict(check_soft_to_hard(Interface::continuous, loss_at_continuous)) == CheckVerdict::holds);
  CHECK(verdict(check_soft_to_hard(Interface::jump, loss_at_continuous)) == CheckVerdict::fails);
  CHECK(verdict(check_soft_to_hard(Interface::continuous, loss_at_jump)) == CheckVerdict::fails);
}

TEST_CASE("reinforced router: a pitchfork at 2, and the least feedback of a winner") {
  CHECK(verdict(check_pitchfork()) == CheckVerdict::holds);
  CHECK(verdict(check_pitchfork(1.9)) == CheckVerdict::fails);
  CHECK(std::abs(least_winning_feedback(3) - 2.746) < 1e-3);
  CHECK(std::abs(least_winning_feedback(64) - 6.925) < 1e-3);
  CHECK(verdict(check_winner()) == CheckVerdict::holds);
  CHECK(verdict(check_winner([](int experts) { return double(experts); })) == CheckVerdict::fails);
}

TEST_CASE("noise filter: the block's own ridge is best for probabilities up to 1 alone") {
  CHECK(verdict(check_noise_filter(kEffort)) == CheckVerdict::holds);
  CHECK(verdict(check_noise_filter(kEffort, 2)) == CheckVerdict::fails);
}

}  // namespace moelab::questions_exact_test
