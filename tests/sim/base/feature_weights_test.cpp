#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab::feature_weights_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Weights are quotients of sums of a few terms.
constexpr double kRounding = 1e-14;

void check_equal(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance = kRounding) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t q = 0; q < found.size(); ++q) {
    CAPTURE(q);
    CHECK(std::abs(found[q] - expected[q]) <= tolerance);
  }
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

TEST_CASE("inverse dispersion weights by hand: mean 1, unaffected by the scale") {
  // 1/s = 1, 1/2, 1/4: mean 7/12.
  for (const double scale : {1.0, 1e-300, 1e300})
    check_equal(inverse_dispersion_weights(std::vector{scale, 2 * scale, 4 * scale}),
                {12.0 / 7, 6.0 / 7, 3.0 / 7});
  CHECK(inverse_dispersion_weights({}).empty());
}

TEST_CASE("features without dispersion have weight 1, the others mean 1 among themselves") {
  check_equal(inverse_dispersion_weights(std::vector{0.0, 0.0, 0.0}), {1, 1, 1});
  check_equal(inverse_dispersion_weights(std::vector{0.0, 1.0, 3.0}), {1, 1.5, 0.5});
  check_equal(inverse_dispersion_weights(std::vector{0.0, 5.0, 0.0}), {1, 1, 1});
  // Rounding beside a dispersion of 3, and a dispersion that is small but real.
  check_equal(inverse_dispersion_weights(std::vector{1e-16, 1.0, 3.0}), {1, 1.5, 0.5});
  check_equal(inverse_dispersion_weights(std::vector{1e-6, 1.0}), {2 / (1 + 1e-6), 2e-6 / (1 + 1e-6)});
}

TEST_CASE("optimal weights by hand for two features") {
  // s = (1, 3), λ = 2: 1/(1 + α) + 1/(3 + α) = 1, so α² + 2α − 1 = 0 and α = √2 − 1.
  const double first = 1 / std::sqrt(2.0);
  check_equal(optimal_feature_weights(std::vector{1.0, 3.0}, 2.0), {first, 1 - first});
  // λ = d/Σ(1/s) = 3/2: α = 0.
  check_equal(optimal_feature_weights(std::vector{1.0, 3.0}, 1.5), {0.75, 0.25});
  check_equal(optimal_feature_weights(std::vector{4.0}, 0.1), {1});
  CHECK(optimal_feature_weights({}, 1.0).empty());
}

TEST_CASE("optimal weights at both ends of lambda, with ties and tiny dispersions") {
  const std::vector<double> distinct = {2.0, 1.0, 5.0};
  const std::vector<double> tied = {1.0, 4.0, 1.0, 7.0};
  for (const double lambda : {5e-324, 1e-300, 1e-30}) {
    check_equal(optimal_feature_weights(distinct, lambda), {0, 1, 0});
    check_equal(optimal_feature_weights(tied, lambda), {0.5, 0, 0.5, 0});
  }
  for (const double lambda : {1e30, 1e308, kInfinity}) {
    check_equal(optimal_feature_weights(distinct, lambda), {1.0 / 3, 1.0 / 3, 1.0 / 3});
    check_equal(optimal_feature_weights(tied, lambda), {0.25, 0.25, 0.25, 0.25});
  }
  check_equal(optimal_feature_weights(std::vector{3.0, 3.0}, 0.01), {0.5, 0.5});
  check_equal(optimal_feature_weights(std::vector{0.0, 0.0}, 1.0), {0.5, 0.5});
  // Only s/λ counts.
  const std::vector<double> weights = optimal_feature_weights(distinct, 1.7);
  for (const double scale : {1e-300, 1e300})
    check_equal(optimal_feature_weights(std::vector{2 * scale, scale, 5 * scale}, 1.7 * scale), weights);
  CHECK(std::abs(sum(weights) - 1) <= kRounding);
}

TEST_CASE("optimal weights satisfy Eq. 7 for many features") {
  std::vector<double> dispersion(1000);
  for (std::size_t q = 0; q < dispersion.size(); ++q)
    dispersion[q] = std::exp(std::sin(static_cast<double>(q * q)));
  for (const double lambda : {1e-6, 1e-3, 1.0, 1e3}) {
    CAPTURE(lambda);
    const std::vector<double> weights = optimal_feature_weights(dispersion, lambda);
    CHECK(std::abs(sum(weights) - 1) <= kRounding);
    // α from every weight: (λ/d)/w_q − s_q, relative to the sizes that cancel in it.
    const double alpha = lambda / 1000 / weights[0] - dispersion[0];
    for (std::size_t q = 0; q < dispersion.size(); ++q) {
      const double found = lambda / 1000 / weights[q] - dispersion[q];
      CHECK(std::abs(found - alpha) <= 1e-13 * (lambda + 4));
    }
  }
}

TEST_CASE("bad input, and numbers that are not finite") {
  CHECK_THROWS_AS(inverse_dispersion_weights(std::vector{1.0, -1.0}), InvalidOption);
  CHECK_THROWS_AS(optimal_feature_weights(std::vector{1.0, -1.0}, 1.0), InvalidOption);
  for (const double lambda : {0.0, -1.0, std::nan("")})
    CHECK_THROWS_AS(optimal_feature_weights(std::vector{1.0}, lambda), InvalidOption);
  for (const double bad : {std::nan(""), kInfinity}) {
    for (const double weight : inverse_dispersion_weights(std::vector{1.0, bad})) CHECK(std::isnan(weight));
    for (const double weight : optimal_feature_weights(std::vector{1.0, bad}, 1.0)) CHECK(std::isnan(weight));
  }
}

}  // namespace moelab::feature_weights_test
