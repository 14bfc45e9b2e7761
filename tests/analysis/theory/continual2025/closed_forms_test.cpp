#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/continual2025.h"

namespace moelab::continual2025_test {
namespace {

const CheckEffort kEffort;

CheckVerdict verdict(const CheckFinding& finding) {
  return verdict_of(finding);
}

}  // namespace

TEST_CASE("tasks in sequence: a round interpolates, and half a step does not") {
  CHECK(verdict(check_interpolation(kEffort)) == CheckVerdict::holds);
  CHECK(verdict(check_interpolation(kEffort, 0.5)) == CheckVerdict::fails);
}

TEST_CASE("tasks in sequence: the error of one expert, and laws that forget a term") {
  CHECK(verdict(check_single_expert(kEffort)) == CheckVerdict::holds);
  // Without the round's own update.
  const RoundLaw no_update = [](const TaskMoments& moments, double r, int t, int) {
    return std::pow(r, t) * moments.size + moments.spread * (1 - std::pow(r, t));
  };
  CHECK(verdict(check_single_expert(kEffort, no_update)) == CheckVerdict::fails);
}

TEST_CASE("tasks in sequence: forgetting of one expert is the difference of its errors") {
  CHECK(verdict(check_single_expert_forgetting(kEffort)) == CheckVerdict::holds);
  const TaskMoments moments{1.3, 0.7};
  for (int tau = 1; tau <= 5; ++tau) {
    const double difference =
        single_expert_error(moments, 0.6, 5, tau) - single_expert_error(moments, 0.6, tau, tau);
    CHECK(single_expert_forgetting(moments, 0.6, 5, tau) == doctest::Approx(difference));
  }
  const RoundLaw no_spread = [](const TaskMoments& own, double r, int t, int tau) {
    return (std::pow(r, t) - std::pow(r, tau)) * own.size;
  };
  CHECK(verdict(check_single_expert_forgetting(kEffort, no_spread)) == CheckVerdict::fails);
}

TEST_CASE("tasks in sequence: an expert's error follows the tasks that it had") {
  CHECK(verdict(check_sent_tasks(kEffort)) == CheckVerdict::holds);
  const SentTasksLaw all_rounds = [](const TaskPool& pool, double r, const std::vector<int>& sent, int task) {
    return std::pow(r, sent.size()) * pool.weights.row(task).squaredNorm();
  };
  CHECK(verdict(check_sent_tasks(kEffort, all_rounds)) == CheckVerdict::fails);
}

}  // namespace moelab::continual2025_test
