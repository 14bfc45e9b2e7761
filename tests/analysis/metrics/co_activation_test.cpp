#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "analysis/metrics/routing.h"

namespace moelab::co_activation_test {

TEST_CASE("experts that are selected together: a case by hand") {
  CoActivation pairs(4);
  for (const std::vector<int>& row : {std::vector<int>{0, 1}, {1, 0}, {0, 2}, {1}}) pairs.add(row);
  // Expert 0 shares two of three rows with 1, expert 1 two of three with 0, expert 2 all with 0; 3 has none.
  CHECK(std::abs(pairs.value().value() - (2.0 / 3 + 2.0 / 3 + 1) / 3) < 1e-14);
}

TEST_CASE("experts that are selected together: bounds, and where there is nothing to share") {
  CoActivation partners(4), alone(4), single(1), none(2);
  for (int row = 0; row < 6; ++row) {
    partners.add(row % 2 ? std::vector<int>{0, 3} : std::vector<int>{1, 2});
    alone.add(std::vector<int>{row % 4});
    single.add(std::vector<int>{0});
    none.add({});
  }
  CHECK(partners.value() == 1);
  CHECK(alone.value() == 0);
  CHECK_FALSE(single.value());
  CHECK_FALSE(none.value());
}

}  // namespace moelab::co_activation_test
