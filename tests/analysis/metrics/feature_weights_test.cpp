#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/fluctuation.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/router_norms.h"
#include "sim/base/error.h"

namespace moelab::feature_weights_test {
namespace {

/// Quotients and roots of small numbers.
constexpr double kLastBits = 1e-14;

}  // namespace

TEST_CASE("variation of feature weights: the clusters' coefficients, weighed by their rows") {
  // Coefficients of variation: 0, .5 and √1.5.
  const Matrix weights = Matrix{{1.0, 1.0, 1.0, 1.0}, {0.5, 1.5, 0.5, 1.5}, {3.0, 1.0, 0.0, 0.0}};
  CHECK(weight_variation(weights, std::vector{0, 0}).value() == 0);
  CHECK(std::abs(weight_variation(weights, std::vector{1, 0, 1, -1, 0}).value() - 0.25) < kLastBits);
  const double third = std::sqrt((4 + 0 + 1 + 1) / 4.0);
  CHECK(std::abs(weight_variation(weights, std::vector{2}).value() - third) < kLastBits);
  // It is blind to the scale of M.
  CHECK(std::abs(weight_variation(10 * weights, std::vector{2, 1}).value() - (third + 0.5) / 2) < kLastBits);
  CHECK_FALSE(weight_variation(weights, std::vector{-1, -1}).has_value());
  CHECK_THROWS_AS(weight_variation(weights, std::vector{3}), InvalidOption);
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

TEST_CASE("largest deviation of the load: an idle expert counts, too") {
  CHECK(expert_load_max_deviation(std::vector<std::int64_t>{2, 2, 2}).value() == 0);
  CHECK(expert_load_max_deviation(std::vector<std::int64_t>{3, 3, 0}).value() == 1);
  CHECK(expert_load_max_violation(std::vector<std::int64_t>{3, 3, 0}).value() == 0.5);
  CHECK(expert_load_max_deviation(std::vector<std::int64_t>{8, 0, 0, 0}).value() == 3);
  CHECK_FALSE(expert_load_max_deviation(std::vector<std::int64_t>{0, 0}).has_value());
}

TEST_CASE("signals of selected experts: variance over mean square, whatever the scale") {
  // Two rows, three experts of two outputs; signals (1, 3, 5) and (2, 2, 7).
  const Matrix outputs = Matrix{{1.0, 9.0, 3.0, 9.0, 5.0, 9.0}, {0.0, 2.0, 0.0, 2.0, 0.0, 7.0}};
  const Matrix gradients = Matrix{{1.0, 0.0}, {0.0, 1.0}};
  const std::vector<unsigned char> first_two = {1, 1, 0, 1, 1, 0}, single = {1, 0, 0, 0, 0, 1};
  const SignalSpread spread = selected_signal_spread(outputs, 3, gradients, first_two);
  CHECK(std::abs(spread.variance - 1) < kLastBits);      // 1 of the first row, 0 of the second
  CHECK(std::abs(spread.square - (5 + 4)) < kLastBits);  // (1 + 9)/2 and 4
  CHECK(selected_signal_spread(outputs, 3, gradients, single).square == 0);
  const SignalSpread scaled = selected_signal_spread(3 * outputs, 3, gradients, first_two);
  CHECK(std::abs(scaled.variance / scaled.square - spread.variance / spread.square) < kLastBits);
  CHECK_THROWS_AS(selected_signal_spread(outputs, 3, gradients, std::vector<unsigned char>{1}),
                  InvalidOption);
}

}  // namespace moelab::feature_weights_test
