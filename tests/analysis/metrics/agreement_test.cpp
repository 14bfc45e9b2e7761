#include "analysis/metrics/agreement.h"

#include <doctest/doctest.h>

#include <cmath>

namespace moelab::agreement_test {
namespace {

/// Quotients of small whole numbers and a few logarithms.
constexpr double kLastBits = 1e-14;

ContingencyTable table(std::initializer_list<std::initializer_list<std::int64_t>> rows) {
  return ContingencyTable(rows);
}

}  // namespace

TEST_CASE("agreement: equal partitions score 1 whatever the experts are called, also the trivial ones") {
  for (const ContingencyTable& equal :
       {table({{3, 0, 0}, {0, 0, 2}}), table({{4}}), table({{1, 0}, {0, 1}})}) {
    CHECK(adjusted_rand_index(equal).value() == 1);
    CHECK(std::abs(normalized_mutual_information(equal).value() - 1) < kLastBits);
  }
}

TEST_CASE("agreement: independent partitions score no better than chance") {
  // Two clusters of four rows, each split evenly: of 28 pairs, 4 are together in both and chance gives 36/7.
  const ContingencyTable even = table({{2, 2}, {2, 2}});
  CHECK(std::abs(adjusted_rand_index(even).value() - (4 - 36.0 / 7) / (12 - 36.0 / 7)) < kLastBits);
  CHECK(std::abs(normalized_mutual_information(even).value()) < kLastBits);
  // One expert for everything tells nothing.
  CHECK(std::abs(adjusted_rand_index(table({{5, 0}, {5, 0}})).value()) < kLastBits);
  CHECK(std::abs(normalized_mutual_information(table({{5, 0}, {5, 0}})).value()) < kLastBits);
}

TEST_CASE("agreement: a case by hand") {
  // Rows aab|bbb: clusters of 3 and 3, experts of 2 and 4. Pairs: 1 + 3 together, 6 and 7 of 15.
  const ContingencyTable six = table({{2, 1}, {0, 3}});
  CHECK(std::abs(adjusted_rand_index(six).value() - (4 - 42.0 / 15) / (6.5 - 42.0 / 15)) < kLastBits);
  const double clusters = std::log(2), experts = -(std::log(1.0 / 3) + 2 * std::log(2.0 / 3)) / 3;
  const double both = -(2 * std::log(1.0 / 3) + std::log(1.0 / 6) + 3 * std::log(1.0 / 2)) / 6;
  CHECK(std::abs(normalized_mutual_information(six).value() -
                 2 * (clusters + experts - both) / (clusters + experts)) < kLastBits);
}

}  // namespace moelab::agreement_test
