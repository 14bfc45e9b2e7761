#include "analysis/metrics/agreement.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "analysis/metrics/routing.h"
#include "sim/base/error.h"

namespace moelab::agreement_test {
namespace {

namespace reference {
#include "tests/analysis/metrics/agreement/reference.inc"
}

/// Quotients of small whole numbers and a few logarithms.
constexpr double kLastBits = 1e-14;

ContingencyTable table(std::initializer_list<std::initializer_list<std::int64_t>> rows) {
  return ContingencyTable(rows);
}

MatrixView view(const std::vector<double>& values) {
  return {values.data(), reference::rows, reference::experts};
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

TEST_CASE("information of experts on clusters, and the share of what there is") {
  // Two of four clusters to an expert: a bit of two.
  const ContingencyTable halves = table({{5, 0}, {5, 0}, {0, 5}, {0, 5}});
  CHECK(std::abs(mutual_information(halves).value() - std::log(2)) < kLastBits);
  CHECK(std::abs(resolved_share(halves).value() - 0.5) < kLastBits);
  CHECK(std::abs(resolved_share(table({{3, 0, 1}, {0, 2, 0}})).value() - 1) < kLastBits);
  CHECK(mutual_information(table({{2, 4}, {3, 6}})).value() < kLastBits);
  CHECK(mutual_information(table({{2, 4}})).value() == 0);
  CHECK_FALSE(resolved_share(table({{2, 4}})));
  CHECK_FALSE(mutual_information(ContingencyTable(0, 3)));
  // Σ n_ce/n log(n_ce n / (n_c n_e)), term by term.
  CHECK(std::abs(mutual_information(table({{3, 1}, {1, 1}})).value() -
                 (3 * std::log(3.0 * 6 / 16) + 2 * std::log(6.0 / 8) + std::log(6.0 / 4)) / 6) < kLastBits);
}

TEST_CASE("metrics of one routing and of two agree with NumPy") {
  constexpr double kRounding = 1e-12;  // of sums over 60 rows
  const MatrixView probabilities = view(reference::probabilities), others = view(reference::others);
  const std::vector<int> one = top1_assignment(probabilities), other = top1_assignment(others);
  const ContingencyTable both = routing_table(one, other);
  CHECK(std::abs(adjusted_rand_index(both).value() - reference::ari) < kRounding);
  CHECK(std::abs(normalized_mutual_information(both).value() - reference::nmi) < kRounding);
  CHECK(std::abs(dispatch_entropy(routing_table(reference::labels, one)).value() - reference::dispatch) <
        kRounding);
  const Vector p = probabilities.colwise().mean(), q = others.colwise().mean();
  CHECK(std::abs(jensen_shannon_divergence(p, q) - reference::divergence) < kRounding);
  CHECK(std::abs(router_margin(probabilities).value() - reference::margin) < kRounding);
  CHECK(std::abs(dead_experts(one, reference::experts).value() - reference::dead) < kRounding);

  const std::vector<int> sets = topk_assignment(probabilities, reference::top);
  const std::vector<int> other_sets = topk_assignment(others, reference::top);
  CHECK(std::abs(routing_saturation(sets, other_sets, reference::top) - reference::saturation) < kRounding);
  std::vector<unsigned char> selected(static_cast<std::size_t>(probabilities.size()), 0);
  for (std::size_t at = 0; at < sets.size(); ++at)
    selected[at / reference::top * reference::experts + static_cast<std::size_t>(sets[at])] = 1;
  CHECK(std::abs(co_activation(selected, reference::experts).value() - reference::together) < kRounding);
}

TEST_CASE("dispatch entropy: what is left of the clusters when the expert is known") {
  CHECK(dispatch_entropy(table({{3, 0, 0}, {0, 0, 2}})).value() == 0);
  // One expert for everything: H of the clusters themselves.
  CHECK(std::abs(dispatch_entropy(table({{0, 4}, {0, 4}})).value() - std::log(2)) < kLastBits);
  // Expert 0 serves two rows of one cluster, expert 1 one row of it and three of the other.
  const double mixed = -(std::log(0.25) + 3 * std::log(0.75)) / 4;
  CHECK(std::abs(dispatch_entropy(table({{2, 1}, {0, 3}})).value() - 4 * mixed / 6) < kLastBits);
  CHECK_FALSE(dispatch_entropy(ContingencyTable(0, 3)));
}

TEST_CASE("two routings agree up to the experts' names, over rows that both serve") {
  const std::vector<int> one = {0, 0, 2, 2, -1, 1}, renamed = {1, 1, 0, 0, 1, -1}, other = {0, 2, 2, 0, 0, 0};
  CHECK(routing_table(one, renamed) == table({{2, 0}, {0, 2}}));
  CHECK(adjusted_rand_index(routing_table(one, renamed)).value() == 1);
  CHECK(adjusted_rand_index(routing_table(one, other)).value() < 0);
  CHECK_THROWS_AS(routing_table(one, {}), InvalidOption);
}

TEST_CASE("Jensen-Shannon divergence: 0 for equal distributions, ln 2 for those that share nothing") {
  const Vector p = Vector::Constant(3, 1.0 / 3);
  CHECK(jensen_shannon_divergence(p, p) == 0);
  Vector left = Vector::Zero(4), right = Vector::Zero(4);
  left.head(2).setConstant(0.5);
  right.tail(2).setConstant(0.5);
  CHECK(std::abs(jensen_shannon_divergence(left, right) - std::log(2)) < kLastBits);
  Vector half = Vector::Zero(4);
  half[0] = 1;
  // Middle (3/4, 1/4): its entropy less half of ln 2.
  const double middle = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  CHECK(std::abs(jensen_shannon_divergence(left, half) - (middle - std::log(2) / 2)) < kLastBits);
}

TEST_CASE("agreement of layers: the adjusted Rand index, but 0 where all rows are together") {
  const std::vector<int> one = {0, 0, 1, 1, 2}, same = {2, 2, 0, 0, 1}, all = {1, 1, 1, 1, 1};
  CHECK(layer_ari(one, same).value() == 1);
  CHECK(layer_ari(one, all).value() == 0);
  CHECK(layer_ari(all, all).value() == 0);
  const std::vector<int> other = {0, 1, 1, 0, 0};
  CHECK(layer_ari(one, other) == adjusted_rand_index(routing_table(one, other)));
  const std::vector<int> none = {-1, -1, -1, -1, -1};
  CHECK_FALSE(layer_ari(one, none).has_value());
}

}  // namespace moelab::agreement_test
