#include "analysis/metrics/routing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/base/error.h"

namespace moelab::routing_test {
namespace {

/// Quotients and roots of small numbers.
constexpr double kLastBits = 1e-14;

}  // namespace

TEST_CASE("variation of feature weights: the clusters' coefficients, weighed by their rows") {
  // Coefficients of variation: 0, 0.5 and √1.5.
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

TEST_CASE("gaps of scores: differences of the two largest logits, whatever the others") {
  const Matrix probabilities = Matrix{{0.5, 0.25, 0.25}, {0.1, 0.45, 0.45}, {0, 1, 0}};
  const Vector gaps = score_gaps(probabilities);
  CHECK(std::abs(gaps[0] - std::log(2)) < kLastBits);
  CHECK(gaps[1] == 0);
  CHECK(std::isinf(gaps[2]));
  CHECK_THROWS_AS(score_gaps(Matrix{{1.0}}), InvalidOption);
}

TEST_CASE("largest deviation of the load: an idle expert counts, too") {
  CHECK(expert_load_max_deviation(std::vector<std::int64_t>{2, 2, 2}).value() == 0);
  CHECK(expert_load_max_deviation(std::vector<std::int64_t>{3, 3, 0}).value() == 1);
  CHECK(expert_load_max_violation(std::vector<std::int64_t>{3, 3, 0}).value() == 0.5);
  CHECK(expert_load_max_deviation(std::vector<std::int64_t>{8, 0, 0, 0}).value() == 3);
  CHECK_FALSE(expert_load_max_deviation(std::vector<std::int64_t>{0, 0}).has_value());
}

TEST_CASE("experts that are selected together: a case by hand") {
  const std::vector<unsigned char> selected = {1, 1, 0, 0,  //
                                               1, 1, 0, 0,  //
                                               1, 0, 1, 0,  //
                                               0, 1, 0, 0};
  // Expert 0 shares two of three rows with 1, expert 1 two of three with 0, expert 2 all with 0; 3 has none.
  CHECK(std::abs(co_activation(selected, 4).value() - (2.0 / 3 + 2.0 / 3 + 1) / 3) < 1e-14);
}

TEST_CASE("experts that are selected together: bounds, and where there is nothing to share") {
  const std::vector<unsigned char> partners = {1, 0, 0, 1, 0, 1, 1, 0}, alone = {1, 0, 0, 1}, single = {1, 1},
                                   none = {0, 0, 0, 0};
  CHECK(co_activation(partners, 4) == 1);
  CHECK(co_activation(alone, 2) == 0);
  CHECK_FALSE(co_activation(single, 1));
  CHECK_FALSE(co_activation(none, 2));
  CHECK_FALSE(co_activation({}, 2));
}

}  // namespace moelab::routing_test
