#include <doctest/doctest.h>

#include <numeric>

#include "tests/sim/model/gating/gated.h"

namespace moelab::balanced_assignment_test {
namespace {

TEST_CASE("by hand: a row gives way where it loses less than others would") {
  // All prefer the first expert, the second row least of all.
  const std::vector<std::vector<double>> rows = {{3, 0}, {1, 0.5}, {2, 0}, {0, -0.75}};
  const Gated gated(BalancedAssignmentGatingOptions{}, rows);
  CHECK(gated.rows_of_expert(0) == std::vector<int>{0, 2});
  CHECK(gated.rows_of_expert(1) == std::vector<int>{1, 3});
  CHECK(gated.gate(0, 0) == 1 / (1 + std::exp(-3.0)));
  CHECK(gated.gate(1, 1) == 1 / (1 + std::exp(-0.5)));
  CHECK(gated.probability(1, 0) == doctest::Approx(1 / (1 + std::exp(-0.5))));
  // By groups of two rows one goes to each, and an odd row has a free choice.
  const Gated pairs(BalancedAssignmentGatingOptions{}, {rows[0], rows[1], rows[2]}, {}, false, 2);
  CHECK(pairs.rows_of_expert(0) == std::vector<int>{0, 2});
  CHECK(pairs.rows_of_expert(1) == std::vector<int>{1});
}

TEST_CASE("equal scores: the lower expert first, and scores that are no numbers choose nobody") {
  const Gated equal(BalancedAssignmentGatingOptions{}, {{0, 0}, {0, 0}, {0, 0}});
  CHECK(equal.rows_of_expert(0) == std::vector<int>{0, 1});
  CHECK(equal.rows_of_expert(1) == std::vector<int>{2});
  const Gated broken(BalancedAssignmentGatingOptions{}, {{NAN, NAN}, {1, 0}});
  CHECK(std::isnan(broken.probability(0, 0)));
  CHECK(serving_expert(broken.routing(), 0) == -1);
  CHECK(serving_expert(broken.routing(), 1) == 0);
  const Gated far(BalancedAssignmentGatingOptions{}, {{-1e300, 0}, {-INFINITY, 0}});
  CHECK(far.rows_of_expert(0).size() + far.rows_of_expert(1).size() >= 1);
}

TEST_CASE("no exchange between rows, and no place that is left, would raise the sum") {
  Engine engine(3);
  Assignment assignment;
  for (const int rows : {1, 5, 12, 40}) {
    for (const int experts : {1, 3, 8}) {
      std::vector<double> cost(size(rows * experts));
      for (double& value : cost) value = draw_normal(engine);
      const auto at = [&](int row, int e) { return cost[size(row * experts + e)]; };
      const int most = (rows + experts - 1) / experts;
      assignment.solve(rows, experts, most, at);
      std::vector<int> counts(size(experts));
      for (int row = 0; row < rows; ++row) {
        REQUIRE(assignment.expert_of(row) >= 0);
        ++counts[size(assignment.expert_of(row))];
      }
      CHECK(*std::max_element(counts.begin(), counts.end()) <= most);
      // Any better assignment would show as a cycle or path of moves of negative cost: shortest distances
      // between experts over single moves, and to those with room (Floyd, Warshall).
      std::vector<double> path(size((experts + 1) * (experts + 1)), INFINITY);
      const auto step = [&](int from, int to) -> double& { return path[size(from * (experts + 1) + to)]; };
      for (int row = 0; row < rows; ++row) {
        const int own = assignment.expert_of(row);
        for (int e = 0; e < experts; ++e) step(own, e) = std::min(step(own, e), at(row, e) - at(row, own));
      }
      for (int e = 0; e < experts; ++e) {
        if (counts[size(e)] < most) step(e, experts) = 0;
        if (counts[size(e)] > 0) step(experts, e) = std::min(step(experts, e), 0.0);
      }
      for (int via = 0; via <= experts; ++via) {
        for (int from = 0; from <= experts; ++from) {
          for (int to = 0; to <= experts; ++to)
            step(from, to) = std::min(step(from, to), step(from, via) + step(via, to));
        }
      }
      for (int e = 0; e <= experts; ++e) CHECK(step(e, e) > -1e-9);
    }
  }
}

}  // namespace
}  // namespace moelab::balanced_assignment_test
