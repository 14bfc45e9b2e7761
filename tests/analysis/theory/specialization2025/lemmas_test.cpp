#include <doctest/doctest.h>

#include "analysis/theory/specialization2025.h"

namespace moelab::specialization_lemmas_test {
namespace {

const CheckEffort kEffort;
using Entries = std::vector<std::pair<int, int>>;

}  // namespace

TEST_CASE("lemma 1: supports and cycles by hand") {
  CHECK(balanced_support(2, 3, 2) == Support{{0, 1}, {2, 0}});
  CHECK(find_cycle({{0, 1}}, 2).empty());                  // N = 1, K = E = 2
  CHECK(find_cycle({{0, 1}, {1, 2}, {2, 3}}, 4).empty());  // a path
  CHECK(find_cycle({{0, 1, 4}, {2, 3}, {3, 4}}, 5).empty());
  CHECK(find_cycle({{0, 1}, {0, 1}}, 2).size() == 4);
  // A cycle over three rows with a tail, which is no part of it.
  const Entries cycle = find_cycle({{0, 1}, {1, 2}, {2, 0}, {0, 3}}, 4);
  REQUIRE(cycle.size() == 6);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const auto& [row, column] = cycle[i];
    const auto& [next_row, next_column] = cycle[(i + 1) % cycle.size()];
    CHECK(row < 3);
    CHECK((row == next_row) != (column == next_column));
  }
}

TEST_CASE("lemma 1: the state by hand") {
  const Support support = {{0, 1}, {0, 1}};
  CHECK(cycle_state(support, 2, find_cycle(support, 2), 0.25)
            .cwiseAbs()
            .rowwise()
            .sum()
            .isApprox(Vector::Ones(2)));
  CHECK(cycle_state(support, 2, {{0, 0}, {0, 1}, {1, 1}, {1, 0}}, 0.25)
            .isApprox(Matrix{{0.75, 0.25}, {0.25, 0.75}}));
}

TEST_CASE("lemma 1: a cycle raises variances and keeps sums; not with the whole step, nor along a path") {
  CHECK(verdict_of(check_cycle(0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(check_cycle(0.99)) == CheckVerdict::holds);
  CHECK(verdict_of(check_cycle(1)) == CheckVerdict::fails);
  const CycleFinder path = [](const Support& support, int columns) {
    Entries entries = find_cycle(support, columns);
    entries.pop_back();
    return entries;
  };
  CHECK(verdict_of(check_cycle(0.5, path)) == CheckVerdict::fails);
  const CycleFinder none = [](const Support&, int) { return Entries(); };
  CHECK(verdict_of(check_cycle(0.5, none)) == CheckVerdict::hypotheses_not_met);
}

TEST_CASE("lemma 1: N (K - 1) >= E is what guarantees a cycle, and nothing less") {
  const auto enough = [](int slack) {
    return [slack](int rows, int nonzeros, int columns) { return rows * (nonzeros - 1) >= columns - slack; };
  };
  CHECK(verdict_of(check_existence(enough(0), true)) == CheckVerdict::holds);
  CHECK(verdict_of(check_existence(enough(1), true)) == CheckVerdict::fails);
  const auto single = [](int rows, int nonzeros, int columns) {
    return rows == 1 && nonzeros == 2 && columns == 2;
  };
  CHECK(verdict_of(check_existence(single, false)) == CheckVerdict::fails);
  const auto any = [](int, int, int) { return true; };
  CHECK(verdict_of(check_existence(any, false)) == CheckVerdict::fails);
}

TEST_CASE("lemma 2: equal size is not enough; disjoint sets are the partition themselves") {
  CHECK(verdict_of(check_lemma2_partition(kEffort, false)) == CheckVerdict::fails);
  const CheckFinding disjoint = check_lemma2_partition(kEffort, true);
  CHECK(verdict_of(disjoint) == CheckVerdict::holds);
  CHECK(disjoint.details[1].second == disjoint.details[0].second);
}

}  // namespace moelab::specialization_lemmas_test
