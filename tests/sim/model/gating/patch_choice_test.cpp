/// Gatings of whole sequences: patch choice, and uniform noise that a sequence shares.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/model/model_options.h"
#include "tests/sim/model/gating/gated.h"

namespace moelab::patch_choice_test {
namespace {

using Gate = PatchChoiceGatingOptions::Gate;
using Average = PatchChoiceGatingOptions::Average;
using Noise = NoisyTopKGatingOptions::Noise;
using NoisePer = NoisyTopKGatingOptions::NoisePer;

/// Two sequences of three tokens, two experts.
const std::vector<std::vector<double>> kScores = {{1, 0}, {3, 0}, {2, 5}, {0, 1}, {0, 2}, {-1, 3}};

void gate_sequences(Gated& gated, int tokens = 3) {
  gated.context.tokens = tokens;
  gated.gating->gate(gated.context, gated.scratch);
}

TEST_CASE("patch choice: each expert takes the l largest scores of every sequence, the earlier of equals") {
  Gated gated(PatchChoiceGatingOptions{.patches = 2, .gate = Gate::one, .average = Average::none}, kScores);
  gate_sequences(gated);
  CHECK(gated.rows_of_expert(0) == std::vector<int>{1, 2, 3, 4});
  CHECK(gated.rows_of_expert(1) == std::vector<int>{0, 2, 4, 5});
  CHECK(gated.gate(1, 0) == 1);
}

TEST_CASE("patch choice: gates by hand, of the chosen tokens, of all, and what divides them") {
  const double e = std::exp(1.0);
  const auto gate_of = [](Gate gate, Average average) {
    Gated gated(PatchChoiceGatingOptions{.patches = 2, .gate = gate, .average = average}, kScores);
    gate_sequences(gated);
    return gated.gate(1, 0);
  };
  CHECK(gate_of(Gate::chosen, Average::none) == doctest::Approx(e / (e + 1)).epsilon(1e-14));
  CHECK(gate_of(Gate::chosen, Average::chosen) == doctest::Approx(e / (e + 1) / 2).epsilon(1e-14));
  CHECK(gate_of(Gate::all, Average::none) == doctest::Approx(1 / (1 + 1 / e + 1 / e / e)).epsilon(1e-14));
  CHECK(gate_of(Gate::one, Average::tokens) == doctest::Approx(1.0 / 3).epsilon(1e-14));
}

TEST_CASE("patch choice: more patches than tokens is all tokens") {
  Gated gated(PatchChoiceGatingOptions{.patches = 9, .gate = Gate::one}, kScores);
  gate_sequences(gated);
  CHECK(gated.rows_of_expert(0).size() == 6);
  CHECK(gated.gate(0, 0) == doctest::Approx(1.0 / 3).epsilon(1e-14));
}

TEST_CASE("uniform noise: tokens of a sequence share it, rows do not") {
  const std::vector<std::vector<double>> zeros(60, std::vector<double>(4, 0.0));
  const auto experts_of = [&](NoisePer per, bool training, bool measured) {
    const NoisyTopKGatingOptions options{
        .k = 1, .noise = Noise::uniform, .noise_per = per, .measured = measured};
    Gated gated(options, zeros, {}, training);
    gate_sequences(gated);
    std::vector<int> experts;
    for (int row = 0; row < 60; ++row) experts.push_back(serving_expert(gated.routing(), row));
    return experts;
  };
  const auto whole_sequences = [](const std::vector<int>& experts) {
    int whole = 0;
    for (std::size_t i = 0; i < experts.size(); i += 3)
      whole += experts[i] == experts[i + 1] && experts[i] == experts[i + 2] ? 1 : 0;
    return whole;
  };
  for (const bool training : {true, false}) {
    const bool measured = !training;
    CHECK(whole_sequences(experts_of(NoisePer::sequence, training, measured)) == 20);
    CHECK(whole_sequences(experts_of(NoisePer::row, training, measured)) < 10);
    const std::vector<int> experts = experts_of(NoisePer::sequence, training, measured);
    for (int e = 0; e < 4; ++e) CHECK(std::count(experts.begin(), experts.end(), e) >= 3);
  }
  // Without noise the first of equal scores is chosen.
  const std::vector<int> quiet = experts_of(NoisePer::sequence, false, false);
  CHECK(std::count(quiet.begin(), quiet.end(), 0) == 60);
}

TEST_CASE("uniform noise in measuring depends on the row alone") {
  const NoisyTopKGatingOptions options{.k = 1, .noise = Noise::uniform, .measured = true};
  Gated gated(options, std::vector<std::vector<double>>(8, {0, 0, 0}));
  std::vector<int> experts;
  for (int row = 0; row < 8; ++row) experts.push_back(serving_expert(gated.routing(), row));
  // The last four rows alone.
  gated.context.x = rows_of<const double>(gated.x.data() + 4 * Gated::kInputs, 4, Gated::kInputs);
  gated.context.rows = 4;
  gated.gating->gate(gated.context, gated.scratch);
  for (int row = 0; row < 4; ++row) CHECK(serving_expert(gated.routing(), row) == experts[size(row + 4)]);
}

TEST_CASE("raw gates are the noisy score, and never zero") {
  const NoisyTopKGatingOptions options{
      .k = 1, .noise = Noise::uniform, .gate = NoisyTopKGatingOptions::Gate::raw, .measured = true};
  const Gated high(options, {{0.2, 4}}), low(options, {{-9, -7}});
  CHECK((high.gate(0, 1) >= 4 && high.gate(0, 1) < 5));
  CHECK((low.gate(0, 1) > 0 && low.gate(0, 1) < 1e-300));
}

TEST_CASE("fields of uniform noise are refused with learned noise") {
  const auto refused = [](NoisyTopKGatingOptions options) {
    const GatingRule rule = options;
    try {
      rule.entry().check(rule.options(), "gating");
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return std::string();
  };
  CHECK(refused({.noise_per = NoisePer::sequence}) == "gating.noise_per");
  CHECK(refused({.gate = NoisyTopKGatingOptions::Gate::raw}) == "gating.gate");
  CHECK(refused({.measured = true}) == "gating.measured");
  CHECK(refused({.noise = Noise::uniform, .noise_per = NoisePer::sequence, .measured = true}) == "");
  CHECK(refused({.noise = Noise::uniform, .gate = NoisyTopKGatingOptions::Gate::raw, .renormalize = true}) ==
        "gating.renormalize");
}

}  // namespace
}  // namespace moelab::patch_choice_test
