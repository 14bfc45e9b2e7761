#include <doctest/doctest.h>

#include "tests/sim/model/gating/gated.h"

namespace moelab::dense_to_sparse_test {
namespace {

const double kLog2 = std::log(2.0);
/// Exponents of a few logarithms in double.
constexpr double kRounding = 1e-14;

DenseToSparseGatingOptions quiet(double tau, double threshold = 0.2) {
  return {.tau = tau, .tau_end = tau, .threshold = threshold, .gumbel = false};
}

TEST_CASE("by hand: the temperature divides scores, and what is above the threshold is active") {
  // Powers 4, 2, 1 at τ = 1, their roots at τ = 2, their squares at τ = 1/2.
  const std::vector<std::vector<double>> rows = {{2 * kLog2, kLog2, 0}};
  const double root = std::sqrt(2.0);
  const Gated warm(quiet(2), rows), one(quiet(1), rows), cold(quiet(0.5), rows);
  CHECK(std::abs(warm.gate(0, 2) - 1 / (3 + root)) < kRounding);
  CHECK(std::abs(one.gate(0, 0) - 4.0 / 7) < kRounding);
  CHECK(std::abs(one.gate(0, 1) - 2.0 / 7) < kRounding);
  CHECK(one.gate(0, 2) == 0);  // 1/7
  CHECK(std::abs(cold.gate(0, 0) - 16.0 / 21) < kRounding);
  CHECK(cold.gate(0, 1) == 0);  // 4/21
  CHECK(std::abs(cold.probability(0, 1) - 4.0 / 21) < kRounding);
  // Nothing above it: the likeliest.
  const Gated none(quiet(2, 0.9), rows);
  CHECK(serving_expert(none.routing(), 0) == 0);
  CHECK(none.gate(0, 1) == 0);
  DenseToSparseGatingOptions whole = quiet(1);
  whole.renormalize = true;
  CHECK(std::abs(Gated(whole, rows).gate(0, 0) - 2.0 / 3) < kRounding);
}

TEST_CASE("the temperature goes from its start to its end with the progress of the training") {
  const std::vector<std::vector<double>> rows = {{kLog2, 0}};
  const auto odds = [&](TauSchedule schedule, double progress) {
    Gated gated(DenseToSparseGatingOptions{.tau = 4, .tau_end = 1, .tau_schedule = schedule}, rows);
    gated.context.progress = progress;
    gated.gating->gate(gated.context, gated.scratch);
    return std::log(gated.probability(0, 0) / gated.probability(0, 1)) / kLog2;  // 1 / τ
  };
  for (const TauSchedule schedule : {TauSchedule::linear, TauSchedule::cosine, TauSchedule::geometric}) {
    CHECK(odds(schedule, 0) == doctest::Approx(0.25));
    CHECK(odds(schedule, 1) == doctest::Approx(1));
  }
  CHECK(odds(TauSchedule::linear, 0.5) == doctest::Approx(1 / 2.5));
  CHECK(odds(TauSchedule::cosine, 0.25) == doctest::Approx(1 / (4 - 3 * (1 - std::sqrt(0.5)) / 2)));
  CHECK(odds(TauSchedule::geometric, 0.5) == doctest::Approx(0.5));
}

TEST_CASE("Gumbel noise in training steps: experts are likeliest as often as their probability") {
  // P(argmax of (γ + g) / τ = e) = softmax(γ)_e, whatever τ.
  const int kRows = 4000;
  const std::vector<std::vector<double>> rows(size(kRows), {std::log(3.0), 0});
  Gated noisy(DenseToSparseGatingOptions{.tau = 0.3, .tau_end = 0.3}, rows, {}, true);
  double first = 0;
  for (int row = 0; row < kRows; ++row) first += noisy.probability(row, 0) > 0.5;
  CHECK(std::abs(first / kRows - 0.75) < 4 * std::sqrt(0.75 * 0.25 / kRows));  // four standard errors
  const auto drawn = noisy.scratch.probabilities;
  noisy.gating->begin_step(noisy.state.data());
  noisy.gating->gate(noisy.context, noisy.scratch);
  CHECK(noisy.scratch.probabilities != drawn);
  const Gated measured(DenseToSparseGatingOptions{.tau = 1, .tau_end = 1}, rows);
  CHECK(std::abs(measured.probability(7, 0) - 0.75) < kRounding);
}

}  // namespace
}  // namespace moelab::dense_to_sparse_test
