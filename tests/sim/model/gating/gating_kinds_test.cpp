/// Gatings beyond soft, top-1, top-K and a threshold: cases worked by hand.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/sim/model/gating/gated.h"

namespace moelab::gating_kinds_test {
namespace {

/// A few operations in double.
constexpr double kRounding = 1e-15;
const double kLog3 = std::log(3.0);

TEST_CASE("sigmoid: each expert by itself, over their sum where renormalised") {
  // σ = 1/2, 3/4, 1/4.
  const std::vector<std::vector<double>> rows = {{0, kLog3, -kLog3}};
  const Gated both(SigmoidGatingOptions{.k = 2}, rows);
  CHECK(std::abs(both.gate(0, 0) - 0.4) < kRounding);
  CHECK(std::abs(both.gate(0, 1) - 0.6) < kRounding);
  CHECK(both.gate(0, 2) == 0);
  CHECK(std::abs(both.probability(0, 2) - 1.0 / 6) < kRounding);
  const Gated one(SigmoidGatingOptions{.k = 1}, rows);
  CHECK(std::abs(one.gate(0, 1) - 0.75) < kRounding);
  const Gated all(SigmoidGatingOptions{}, rows);
  CHECK(all.routing().every_pair);
  CHECK(all.gating->activates_all());
  CHECK(std::abs(all.gate(0, 2) - 0.25) < kRounding);
  // σ + b = 0.5, 0.75, 0.85: the bias chooses, the gates stay.
  const Gated biased(SigmoidGatingOptions{.k = 2, .renormalize = false}, rows, {0, 0, 0.6});
  CHECK(biased.gate(0, 0) == 0);
  CHECK(std::abs(biased.gate(0, 2) - 0.25) < kRounding);
  // Scores with σ = 0 in double leave finite gates.
  const Gated low(SigmoidGatingOptions{.k = 2}, {{-900, -900, -900}});
  CHECK(low.gate(0, 0) == 0.5);
  CHECK(low.probability(0, 2) == doctest::Approx(1.0 / 3));
}

TEST_CASE("noisy top-K: without noise outside of training, another one in each step") {
  const std::vector<std::vector<double>> rows(50, {0.1, 0, -0.1, 0.05});
  const Gated quiet(NoisyTopKGatingOptions{}, rows), plain(TopKGatingOptions{.k = 2}, rows);
  for (int row = 0; row < 50; ++row) {
    for (int e = 0; e < 4; ++e) CHECK(quiet.gate(row, e) == plain.gate(row, e));
  }
  for (const auto noise : {NoisyTopKGatingOptions::Noise::learned, NoisyTopKGatingOptions::Noise::uniform}) {
    Gated noisy(NoisyTopKGatingOptions{.noise = noise}, rows, {}, true);
    const auto selected_by = noisy.scratch.selected_by;
    noisy.gating->gate(noisy.context, noisy.scratch);
    CHECK(noisy.scratch.selected_by == selected_by);  // of one step
    const auto rows_of_first = noisy.rows_of_expert(0);
    noisy.gating->begin_step(noisy.state.data());
    noisy.gating->gate(noisy.context, noisy.scratch);
    CHECK(noisy.scratch.selected_by != selected_by);
    CHECK(noisy.rows_of_expert(0) != rows_of_first);
  }
}

TEST_CASE(
    "noisy top-K: a step's gates are those of top-K at the noisy scores, of uniform noise with r of the "
    "plain") {
  Engine engine(5);
  std::vector<std::vector<double>> rows(20, std::vector<double>(4)), noisy_rows = rows;
  for (std::vector<double>& row : rows) {
    for (double& score : row) score = draw_normal(engine);
  }
  for (const auto noise : {NoisyTopKGatingOptions::Noise::learned, NoisyTopKGatingOptions::Noise::uniform}) {
    const Gated noisy(NoisyTopKGatingOptions{.noise = noise}, rows, {}, true);
    for (std::size_t row = 0; row < 20; ++row) {
      for (std::size_t e = 0; e < 4; ++e)
        noisy_rows[row][e] = noisy.scratch.selected_by[row * size(noisy.routing().stride) + e];
    }
    const Gated top(TopKGatingOptions{.k = 2}, noisy_rows), plain(SoftGatingOptions{}, rows);
    for (int row = 0; row < 20; ++row) {
      double total = 0;
      for (int e = 0; e < 4; ++e) total += top.gate(row, e) > 0 ? plain.gate(row, e) : 0;
      for (int e = 0; e < 4; ++e) {
        const bool learned = noise == NoisyTopKGatingOptions::Noise::learned;
        const double of_plain = top.gate(row, e) > 0 ? plain.gate(row, e) / total : 0;
        CHECK(std::abs(noisy.gate(row, e) - (learned ? top.gate(row, e) : of_plain)) < kRounding);
      }
    }
  }
}

TEST_CASE("noisy top-K: the noise has the scale softplus(x W) + 0.01, or is uniform") {
  const std::vector<std::vector<double>> rows(3, {0.5, -0.5});
  Gated noisy(NoisyTopKGatingOptions{.k = 1}, rows, {}, true);
  const std::size_t stride = size(noisy.routing().stride);
  const auto start = noisy.scratch.selected_by;
  // W_noise from zero to a column of twos for the first expert: the same draws, on another scale.
  for (std::size_t j = 0; j < Gated::kInputs; ++j) noisy.parameters[j * stride] = 2;
  noisy.gating->gate(noisy.context, noisy.scratch);
  for (std::size_t row = 0; row < 3; ++row) {
    const double u = 2 * (noisy.x[row * 3] + noisy.x[row * 3 + 1] + noisy.x[row * 3 + 2]);
    const double factor = (std::log(1 + std::exp(u)) + 0.01) / (std::log(2.0) + 0.01);
    const double noise = noisy.scratch.selected_by[row * stride] - 0.5;
    CHECK(noise == doctest::Approx(factor * (start[row * stride] - 0.5)).epsilon(1e-12));
    CHECK(noisy.scratch.selected_by[row * stride + 1] == start[row * stride + 1]);
  }
  const NoisyTopKGatingOptions uniform{.k = 1, .noise = NoisyTopKGatingOptions::Noise::uniform};
  const std::vector<std::vector<double>> many(2000, {1, 1});
  const Gated drawn(uniform, many, {}, true);
  double mean = 0;
  for (std::size_t row = 0; row < 2000; ++row) {
    const double noise = drawn.scratch.selected_by[row * stride] - 1;
    CHECK((noise >= 0 && noise < 1));
    mean += noise / 2000;
    CHECK(drawn.gate(static_cast<int>(row), 0) + drawn.gate(static_cast<int>(row), 1) == 0.5);  // r of γ
  }
  CHECK(std::abs(mean - 0.5) < 4 * std::sqrt(1.0 / 12 / 2000));  // four standard errors
}

TEST_CASE("expert choice: each expert takes its likeliest rows of a group") {
  // r of the first expert: 0.9, 0.8, 0.75, 0.5.
  const std::vector<std::vector<double>> rows = {{std::log(9.0), 0}, {std::log(4.0), 0}, {kLog3, 0}, {0, 0}};
  const Gated all(ExpertChoiceGatingOptions{.capacity_factor = 1}, rows);
  CHECK(all.rows_of_expert(0) == std::vector<int>{0, 1});
  CHECK(all.rows_of_expert(1) == std::vector<int>{2, 3});
  CHECK(std::abs(all.gate(0, 0) - 0.9) < kRounding);
  CHECK(std::abs(all.gate(2, 1) - 0.25) < kRounding);
  const Gated pairs(ExpertChoiceGatingOptions{.capacity_factor = 1}, rows, {}, false, 2);
  CHECK(pairs.rows_of_expert(0) == std::vector<int>{0, 2});
  CHECK(pairs.rows_of_expert(1) == std::vector<int>{1, 3});
  // Equal rows: the earlier ones; and some row has no expert.
  const Gated equal(ExpertChoiceGatingOptions{.capacity_factor = 1}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}});
  CHECK(equal.rows_of_expert(0) == std::vector<int>{0, 1});
  CHECK(equal.rows_of_expert(1) == std::vector<int>{0, 1});
  CHECK(serving_expert(equal.routing(), 3) == -1);
}

TEST_CASE("relu: positive scores are the gates; a row without one is unserved and uniform") {
  const std::vector<std::vector<double>> rows = {{2, -1, 1}, {-1, -2, 0}};
  const Gated gated(ReluGatingOptions{}, rows);
  CHECK(gated.gate(0, 0) == 2);
  CHECK(gated.gate(0, 1) == 0);
  CHECK(gated.gate(0, 2) == 1);
  CHECK(gated.probability(0, 0) == 2.0 / 3);
  CHECK(serving_expert(gated.routing(), 1) == -1);
  for (int e = 0; e < 3; ++e) CHECK(gated.probability(1, e) == 1.0 / 3);
  const Gated not_a_number(ReluGatingOptions{}, {{NAN, 1, 2}});
  CHECK(std::isnan(not_a_number.probability(0, 1)));
}

TEST_CASE("relu: the loss on the gates, and its factor steered to the target") {
  const std::vector<std::vector<double>> rows = {{2, -1, 1}, {-1, -2, 0}};
  // f = 1/2, 0, 1/2 of n K = 2, mean gates 1, 0, 1/2: λ · 3 · (1/2 · 1 + 1/2 · 1/2).
  Gated gated(ReluGatingOptions{.k = 1, .l1_start = 0.5, .l1_factor = 1.25}, rows, {}, true);
  CHECK(gated.gating->added_loss(gated.context, gated.scratch) == 0.5 * 3 * 0.75);
  gated.gating->end_step(gated.scratch, gated.state.data());
  CHECK(gated.state == std::vector<double>{0.4});  // two pairs are not above two rows
  gated.scores[1] = 3;
  gated.gating->gate(gated.context, gated.scratch);
  gated.gating->end_step(gated.scratch, gated.state.data());
  CHECK(gated.state == std::vector<double>{0.5});
  CHECK(Gated(ReluGatingOptions{.k = 1}, rows).gating->added_loss({}, {}) == 0);
}

TEST_CASE("sinkhorn: rows that all prefer one expert are spread by how much they do") {
  // Columns are equal with b_2 / b_1 = e^1.5, so the first row's odds are e^-0.5.
  const std::vector<std::vector<double>> rows = {{1, 0}, {2, 0}};
  const Gated gated(SinkhornGatingOptions{}, rows);
  CHECK(gated.rows_of_expert(0) == std::vector<int>{1});
  CHECK(gated.rows_of_expert(1) == std::vector<int>{0});
  CHECK(std::abs(gated.gate(1, 0) - 1 / (1 + std::exp(-2.0))) < kRounding);
  CHECK(gated.gate(0, 1) == 0.5);
  CHECK(gated.scratch.column_scales[1] / gated.scratch.column_scales[0] ==
        doctest::Approx(std::exp(1.5)).epsilon(1e-3));
  const Gated both(SinkhornGatingOptions{.k = 2}, rows);
  CHECK(both.gate(1, 1) == both.probability(1, 1));
}

TEST_CASE("straight-through top-1: gate 1, and the gradient of the raw probability") {
  const std::vector<std::vector<double>> rows = {{0.3, -1.2, 2.0}, {1, 0, 0.5}};
  Gated through(Top1GatingOptions{.straight_through = true}, rows);
  Gated raw(TopKGatingOptions{.k = 1}, rows);
  CHECK(through.gate(0, 2) == 1);
  AlignedVector<double> expected(through.scores.size(), 0.0);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 0.1 * static_cast<double>(i % 7) - 0.25;
  AlignedVector<double> gradient = expected;
  through.gating->backward(through.context, through.scratch, gradient.data(), gradient.data(), nullptr);
  raw.gating->backward(raw.context, raw.scratch, expected.data(), expected.data(), nullptr);
  CHECK(gradient == expected);
  CHECK(std::any_of(gradient.begin(), gradient.end(), [](double value) { return value != 0; }));
}

}  // namespace
}  // namespace moelab::gating_kinds_test
