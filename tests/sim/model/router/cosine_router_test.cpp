#include <doctest/doctest.h>

#include <cmath>

#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::cosine_router_test {
namespace {

/// Sums of a few terms of order one, rounded in double.
constexpr double kRounding = 1e-14;

constexpr int kInputs = 2, kExperts = 3;

RouterOptions options_of(const std::string& kind, double tau1, double tau2) {
  if (kind == "cosine") return CosineRouterOptions{};
  return PerturbedCosineRouterOptions{.tau1 = tau1, .tau2 = tau2};
}

/// A router with rows β1 (E, d) and biases β0 (E).
struct Example : StartedRouter {
  Example(const std::string& kind, double tau1, double tau2)
      : StartedRouter(options_of(kind, tau1, tau2), {.input_dim = kInputs, .experts = kExperts}, {}) {}
  double& entry(int row, int e) { return parameters[entries(row, kernels::padded(kExperts)) + size(e)]; }
  static RouterContext<double> context(const std::vector<double>& x) {
    RouterContext<double> context;
    context.x = rows_of(x.data(), static_cast<int>(x.size()) / kInputs, kInputs);
    return context;
  }
  std::vector<double> scores(const std::vector<double>& x) {
    const int rows = static_cast<int>(x.size()) / kInputs;
    AlignedVector<double> padded(entries(rows, kernels::padded(kExperts)), NAN);
    router->forward(context(x), parameters.data(), *scratch, padded.data());
    std::vector<double> scores;
    for (int i = 0; i < rows; ++i) {
      const auto row = padded.begin() + i * kernels::padded(kExperts);
      scores.insert(scores.end(), row, row + kExperts);
    }
    return scores;
  }
  /// β1 = (3, 4), (0, 2), (−1, 0), β0 = 0.5, 0, −0.25.
  void fill() {
    const double rows[kExperts][kInputs + 1] = {{3, 4, 0.5}, {0, 2, 0}, {-1, 0, -0.25}};
    for (int e = 0; e < kExperts; ++e) {
      for (int j = 0; j <= kInputs; ++j) entry(j, e) = rows[e][j];
    }
  }
};

void check_equal(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= kRounding);
  }
}

TEST_CASE("scores of the cosine and the perturbed cosine router by hand") {
  // x = (4, 3) has norm 5 and products 24, 6, −4 with rows of norms 5, 2, 1.
  Example plain("cosine", 0, 0), perturbed("perturbed_cosine", 1, 3);
  plain.fill();
  perturbed.fill();
  check_equal(plain.scores({4, 3}), {24.0 / 25 + 0.5, 6.0 / 10, -4.0 / 5 - 0.25});
  check_equal(perturbed.scores({4, 3}), {24.0 / (6 * 8) + 0.5, 6.0 / (3 * 8), -4.0 / (2 * 8) - 0.25});
}

TEST_CASE("the cosine knows no scale of rows and inputs, the perturbed one does") {
  for (const auto& [given_kind, is_invariant] : {std::pair{"cosine", true}, {"perturbed_cosine", false}}) {
    const auto& kind = given_kind;
    CAPTURE(kind);
    Example example(kind, 1, 1);
    example.fill();
    const std::vector<double> before = example.scores({4, 3});
    CHECK((std::abs(example.scores({8, 6})[0] - before[0]) <= kRounding) == is_invariant);
    for (int j = 0; j < kInputs; ++j) example.entry(j, 0) *= 2;
    CHECK((std::abs(example.scores({4, 3})[0] - before[0]) <= kRounding) == is_invariant);
  }
}

TEST_CASE("a zero row or input has cosine zero and finite gradients") {
  for (const char* kind : {"cosine", "perturbed_cosine"}) {
    CAPTURE(kind);
    Example example(kind, 1, 1);
    example.fill();
    example.entry(0, 1) = example.entry(1, 1) = 0;
    check_equal({example.scores({4, 3})[1]}, {0});
    check_equal(example.scores({0, 0}), {0.5, 0, -0.25});
    const std::vector<double> x = {4, 3, 0, 0};
    const AlignedVector<double> upstream(static_cast<std::size_t>(2 * kernels::padded(kExperts)), 1.0);
    AlignedVector<double> gradient(example.parameters.size(), NAN);
    AlignedVector<double> inputs(static_cast<std::size_t>(2 * kernels::padded(kInputs)), NAN);
    example.scores(x);
    example.router->backward(Example::context(x), example.parameters.data(), *example.scratch,
                             {upstream.data(), nullptr, gradient.data(), inputs.data()});
    for (int row = 0; row < 2; ++row) {
      for (int j = 0; j < kInputs; ++j) {
        CHECK(std::isfinite(inputs[static_cast<std::size_t>(row * kernels::padded(kInputs) + j)]));
      }
    }
    for (int e = 0; e < kExperts; ++e) {
      for (int j = 0; j <= kInputs; ++j) {
        CHECK(std::isfinite(gradient[static_cast<std::size_t>(j * kernels::padded(kExperts) + e)]));
      }
    }
  }
}

}  // namespace
}  // namespace moelab::cosine_router_test
