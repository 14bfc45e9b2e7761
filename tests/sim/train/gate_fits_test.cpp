/// Least-squares fits under every gate that a mixing measure may have.

#include <doctest/doctest.h>

#include "sim/train/best_fit.h"
#include "sim/train/least_squares.h"
#include "tests/sim/model/mixture_gates.h"
#include "tests/sim/train/regression_fit.h"

namespace moelab::gate_fits_test {
namespace {

/// Least curvatures are near 1e-3, and fits of noiseless data end at ‖∇L‖ ≤ 1e-8 at least.
constexpr double kRecovered = 1e-4;
constexpr int kDim = 2, kComponents = 4, kSamples = 600;

Fit gate_fit(const MixtureGates& gates, const Json& expert, int experts) {
  return {mixture_data(gates, expert, kDim, kComponents, 0),
          mixture_model(gates, expert, experts),
          kSamples,
          {9, 0}};
}

bool is_smooth(const MixtureGates& gates) {
  return gates.gating["kind"] != "topk";
}

TEST_CASE(
    "a start near the truth with no perturbation is the truth, with one fit more in each softmax's cells") {
  for (const MixtureGates& gates : mixture_gates()) {
    CAPTURE(gates.name);
    const bool splits = gates.gating["kind"] == "soft";
    for (const int experts : {kComponents, splits ? kComponents + 2 : kComponents}) {
      CAPTURE(experts);
      Fit fit = gate_fit(gates, {{"kind", "relu"}}, experts);
      Engine engine(1);
      MeasurePlaces(fit.options, *fit.model.network)
          .write(near_truth(*fit.problem->true_measure(), experts, 0, engine), fit.model.parameters);
      CHECK(fit.error() < 1e-12);
    }
  }
}

TEST_CASE("without noise a fit from near the truth recovers f under every smooth gate") {
  for (const MixtureGates& gates : mixture_gates()) {
    if (!is_smooth(gates)) continue;
    CAPTURE(gates.name);
    Fit fit = gate_fit(gates, {{"kind", "linear"}}, kComponents);
    CHECK(fit.error() > 0.1);
    const FitOutcome outcome = fit.run(WarmStartOptions{.perturbation = 0.02, .tries = 2});
    CHECK(outcome.state == TrainState::done);
    CHECK(fit.error() < kRecovered);
  }
}

TEST_CASE("the best of many starts has under every gate at most the loss of the truth") {
  for (const MixtureGates& gates : mixture_gates()) {
    CAPTURE(gates.name);
    Fit fit = gate_fit(gates, {{"kind", "linear"}}, kComponents);
    const FitOutcome outcome = fit.run(BestStartOptions{.starts = 3, .rows = 200, .polished = 2}, 60);
    CHECK(outcome.state == TrainState::done);
    REQUIRE(outcome.minima);
    CHECK(outcome.minima->near >= 1);
    CHECK(std::isfinite(fit.error()));
    if (is_smooth(gates)) CHECK(fit.error() < 0.2);
  }
}

TEST_CASE("clusters of k-means start a measure of the model's own size") {
  for (const MixtureGates& gates : mixture_gates()) {
    CAPTURE(gates.name);
    Fit fit = gate_fit(gates, {{"kind", "linear"}}, 5);
    const MixtureForm form = *mixture_form(fit.options);
    const MeasurePlaces places(fit.options, *fit.model.network);
    Engine engine(2);
    const MixingMeasure start = clustered_start(form, fit.data, kSamples, kDim, 5, engine);
    places.write(start, fit.model.parameters);
    const MixingMeasure back = places.read(fit.model.parameters);
    const auto is_same = [](const Matrix& left, const Matrix& right) {
      return left.size() == right.size() && (left.size() == 0 || left == right);
    };
    CHECK(is_same(back.gate, start.gate));
    CHECK(is_same(back.group_gate, start.group_gate));
    CHECK(is_same(back.shared_slope, start.shared_slope));
    CHECK(start.slope.norm() > 0);
  }
}

}  // namespace
}  // namespace moelab::gate_fits_test
