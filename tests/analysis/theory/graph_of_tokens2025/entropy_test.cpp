#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025.h"
#include "sim/base/numerics.h"

namespace moelab::entropy_test {
namespace {

const CheckEffort kEffort;
constexpr MixingKind kKinds[] = {MixingKind::similarity, MixingKind::attention};

}  // namespace

TEST_CASE("softmax: by hand, at extremes, and without mass at -infinity") {
  constexpr double kRounding = 1e-15;
  Matrix scores(3, 2);
  scores << 0, std::log(3.0), 1e5, -1e5, 7, -INFINITY;
  const Matrix probabilities = softmax(scores);
  CHECK(std::abs(probabilities(0, 1) - 0.75) < kRounding);
  CHECK(probabilities.row(1) == Eigen::RowVector2d(1, 0));
  CHECK(probabilities.row(2) == Eigen::RowVector2d(1, 0));
  const Matrix logs = log_softmax(scores.topRows(2));
  CHECK(std::abs(logs(0, 0) - std::log(0.25)) < kRounding);
  CHECK(logs(1, 1) == -2e5);
}

TEST_CASE("gates: the two forms agree, and need the division") {
  Vector scores(4);
  scores << 0, std::log(2.0), std::log(6.0), -1;
  for (const GateRule& rule : {GateRule(renormalised_gates), GateRule(masked_gates)}) {
    const Vector gates = rule(scores, 2);
    CHECK((gates - Eigen::Vector4d(0, 0.25, 0.75, 0)).cwiseAbs().maxCoeff() < 1e-15);
  }
  CHECK(verdict_of(check_topk(kEffort)) == CheckVerdict::holds);
  const auto raw = [](const Vector& values, int selected) -> Vector {
    const Vector gates = renormalised_gates(values, selected);
    return (gates.array() > 0).select(softmax(values.transpose()).transpose(), 0.0);
  };
  CHECK(verdict_of(check_topk(kEffort, raw)) == CheckVerdict::fails);
  const auto one_more = [](const Vector& values, int selected) {
    return masked_gates(values, std::min(selected + 1, static_cast<int>(values.size())));
  };
  CHECK(verdict_of(check_topk(kEffort, renormalised_gates, one_more)) == CheckVerdict::fails);
}

TEST_CASE("proposition 1: the bound always, not without the entropy of the weights") {
  const auto without_weights = [](const Vector& weights, const Vector& entropies) {
    return weights.dot(entropies);
  };
  const auto half_of_it = [](const Vector& weights, const Vector& entropies) {
    return (proposition1_bound(weights, entropies) + weights.dot(entropies)) / 2;
  };
  for (const MixingKind kind : kKinds) {
    CHECK(verdict_of(check_entropy_bound(kEffort, kind)) == CheckVerdict::holds);
    CHECK(verdict_of(check_entropy_bound(kEffort, kind, without_weights)) == CheckVerdict::fails);
    CHECK(verdict_of(check_entropy_bound(kEffort, kind, half_of_it)) == CheckVerdict::fails);
  }
}

TEST_CASE("proposition 1: the limit over decided tokens alone; at finite parameters most tokens fail") {
  for (const MixingKind kind : kKinds) {
    CHECK(verdict_of(check_entropy_limit(kEffort, kind, false)) == CheckVerdict::holds);
    CHECK(verdict_of(check_entropy_limit(kEffort, kind, true)) == CheckVerdict::fails);
    const CheckFinding finding = check_entropy_at(kEffort, kind, 1);
    CHECK(verdict_of(finding) == CheckVerdict::fails);
    REQUIRE(finding.details.size() > 3);
    const double share = finding.details[1].second;
    CHECK(std::abs(finding.measured + share - 1) < 1e-12);
    CHECK(finding.details[2].second < share);
    CHECK(finding.details[3].second > share);
  }
}

TEST_CASE("mixing: concave, never lower with a doubly stochastic S, rarely with a softmax") {
  CHECK(verdict_of(check_concavity(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_doubly_stochastic(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_doubly_stochastic(kEffort, softmax_mixing)) == CheckVerdict::hypotheses_not_met);
  CHECK(check_doubly_stochastic(kEffort, softmax_mixing).measured < 1);
  CHECK(verdict_of(check_lower_entropy(kEffort)) == CheckVerdict::fails);
  CHECK(check_lower_entropy(kEffort).measured > 0);
}

TEST_CASE("S tends to I for tokens of one length, and token by token where a token is most like itself") {
  CHECK(verdict_of(check_identity_limit(kEffort, true)) == CheckVerdict::holds);
  CHECK(verdict_of(check_identity_limit(kEffort, false)) == CheckVerdict::fails);
  CHECK(verdict_of(check_identity_criterion(kEffort)) == CheckVerdict::holds);
}

TEST_CASE("frequencies are listed with their interval") {
  CheckFinding finding;
  add_frequency(finding, "share", 3, 40);
  REQUIRE(finding.details.size() == 3);
  CHECK(finding.details[0].first == "share");
  CHECK(finding.details[0].second == 3 / 40.0);
  CHECK(std::abs(finding.details[1].second - 0.01574217985) < 1e-9);
  CHECK(std::abs(finding.details[2].second - 0.2038647487) < 1e-9);
}

}  // namespace moelab::entropy_test
