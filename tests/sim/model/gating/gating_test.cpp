#include "sim/model/gating/gating.h"

#include <doctest/doctest.h>

#include <cmath>

#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/base/kernels/multiply.h"
#include "tests/sim/model/gating/gated.h"

namespace moelab::gating_test {
namespace {

/// A softmax of two or three scores in double.
constexpr double kRounding = 1e-15;

TEST_CASE("ties go to the lower index, and pairs are listed by expert with ascending rows") {
  const std::vector<std::vector<double>> rows = {{1, 1, 1}, {0, 2, 2}, {3, 0, 3}};
  const Gated top1(Top1GatingOptions{}, rows);
  CHECK(top1.gate(0, 0) == 1);
  CHECK(top1.gate(1, 1) == 1);
  CHECK(top1.gate(2, 0) == 1);
  CHECK(top1.routing().offsets == std::vector<int>{0, 2, 3, 3});
  CHECK(top1.routing().pair_rows == std::vector<int>{0, 2, 1});
  CHECK_FALSE(top1.routing().every_pair);

  const Gated top2(TopKGatingOptions{.k = 2, .renormalize = true}, rows);
  CHECK(top2.routing().offsets == std::vector<int>{0, 2, 4, 6});
  CHECK(top2.routing().pair_rows == std::vector<int>{0, 2, 0, 1, 1, 2});
  for (const auto& [row, expert] : {std::pair{0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 0}, {2, 2}}) {
    CHECK(std::abs(top2.gate(row, expert) - 0.5) < kRounding);
  }
  CHECK(top2.gate(0, 2) == 0);
}

TEST_CASE("the serving expert is the selected one with the largest gate, the lower of two") {
  const std::vector<std::vector<double>> rows = {{1, 1, 1}, {0, 2, 2}, {3, 0, 4}};
  for (const GatingRule& rule : {GatingRule(SoftGatingOptions{}), GatingRule(Top1GatingOptions{}),
                                 GatingRule(TopKGatingOptions{.k = 2, .renormalize = true})}) {
    CAPTURE(rule.chosen());
    const Gated gated(rule, rows);
    CHECK(serving_expert(gated.routing(), 0) == 0);
    CHECK(serving_expert(gated.routing(), 1) == 1);
    CHECK(serving_expert(gated.routing(), 2) == 2);
  }
  // A bias of the selection chooses who may serve; gates say who does. Probabilities near 0.05, 0.02 and
  // 0.93.
  const Gated biased(TopKGatingOptions{.k = 2, .renormalize = true}, {{1, 0, 4}}, {1, 0.95, 0});
  CHECK(biased.gate(0, 2) == 0);
  CHECK(serving_expert(biased.routing(), 0) == 0);
  // Nobody serves a row whose gates are all skipped.
  const Gated skipped(SoftGatingOptions{.skip_below = 0.5}, {{0, 0, 0}, {0, 9, 0}});
  CHECK(serving_expert(skipped.routing(), 0) == -1);
  CHECK(serving_expert(skipped.routing(), 1) == 1);
}

TEST_CASE("topp activates every expert above the threshold, or the likeliest") {
  // Probabilities 2/3, 1/4, 1/12 in the first row, uniform in the second.
  const std::vector<std::vector<double>> rows = {{std::log(8.0), std::log(3.0), 0}, {1, 1, 1}};
  const Gated some(TopPGatingOptions{.p = 0.1}, rows);
  CHECK(std::abs(some.gate(0, 0) - 8.0 / 11) < kRounding);
  CHECK(std::abs(some.gate(0, 1) - 3.0 / 11) < kRounding);
  CHECK(some.gate(0, 2) == 0);
  CHECK(some.routing().offsets == std::vector<int>{0, 2, 4, 5});
  const Gated likeliest(TopPGatingOptions{.p = 0.9, .renormalize = false}, rows);
  CHECK(std::abs(likeliest.gate(0, 0) - 2.0 / 3) < kRounding);
  CHECK(likeliest.routing().offsets == std::vector<int>{0, 2, 2, 2});
}

TEST_CASE("a learnable threshold: the same experts, gates by how far they exceed it") {
  const std::vector<std::vector<double>> rows = {{std::log(8.0), std::log(3.0), 0}, {1, 1, 1}};
  const Gated some(TopPGatingOptions{.p = 0.1, .learnable = true}, rows);
  // Excesses 2/3 − 1/10 = 17/30 and 1/4 − 1/10 = 3/20.
  CHECK(std::abs(some.gate(0, 0) - 34.0 / 43) < kRounding);
  CHECK(std::abs(some.gate(0, 1) - 9.0 / 43) < kRounding);
  CHECK(some.gate(0, 2) == 0);
  CHECK(some.routing().offsets == std::vector<int>{0, 2, 4, 5});
  const Gated raw(TopPGatingOptions{.p = 0.1, .learnable = true, .renormalize = false}, rows);
  CHECK(std::abs(raw.gate(0, 1) - 0.15) < kRounding);
  // None is above: the likeliest, alone.
  const Gated alone(TopPGatingOptions{.p = 0.9, .learnable = true, .renormalize = false}, rows);
  CHECK(alone.gate(0, 0) == 1);
  CHECK(alone.gate(0, 1) == 0);
}

TEST_CASE("the learned threshold is logit p in a block of its own, and an array") {
  const std::unique_ptr<Gating<double>> gating =
      make_gating<double>(TopPGatingOptions{.p = 0.2, .learnable = true});
  CHECK(gating->parameter_count() == 1);
  REQUIRE(gating->block_size() == kernels::kPadding);
  AlignedVector<double> block(gating->block_size(), 99.0);
  gating->initialize({}, block.data());
  CHECK(block[0] == std::log(0.2 / (1 - 0.2)));
  for (std::size_t i = 1; i < block.size(); ++i) CHECK(block[i] == 0);
  const std::vector<NamedArray<double>> arrays = gating->arrays(block.data());
  REQUIRE(arrays.size() == 1);
  CHECK(arrays[0].name == "gating_threshold_logit");
  CHECK(arrays[0].shape == std::vector<std::int64_t>{1});
  CHECK(arrays[0].values[0] == block[0]);

  const GatingRule rule(TopPGatingOptions{});
  const GatingKind& kind = rule.entry();
  kind.check(TopPGatingOptions{.p = 0.2, .learnable = true}, "model.gating.train");
  kind.check(TopPGatingOptions{.p = 0}, "model.gating.train");
  for (const double p : {0.0, 1.0}) {
    CHECK_THROWS_WITH_AS(kind.check(TopPGatingOptions{.p = p, .learnable = true}, "model.gating.train"),
                         doctest::Contains("model.gating.train.p: got "), InvalidOption);
  }
}

TEST_CASE("a bias of the selection chooses, and the gates stay those of the probabilities") {
  // Probabilities 1/2, 1/4, 1/4.
  const Gated gated(TopKGatingOptions{.k = 1, .renormalize = false}, {{std::log(2.0), 0, 0}}, {0, 0, 0.3});
  CHECK(gated.gate(0, 0) == 0);
  CHECK(std::abs(gated.gate(0, 2) - 0.25) < kRounding);
}

TEST_CASE("renormalised top-k gates are the softmax over the chosen scores; raw ones the probabilities") {
  const std::vector<std::vector<double>> rows = {{0.3, -1.2, 2.0}};
  const double total = std::exp(0.3) + std::exp(-1.2) + std::exp(2.0), chosen = std::exp(0.3) + std::exp(2.0);
  const Gated shares(TopKGatingOptions{.k = 2, .renormalize = true}, rows);
  const Gated raw(TopKGatingOptions{.k = 2, .renormalize = false}, rows);
  CHECK(std::abs(shares.gate(0, 2) - std::exp(2.0) / chosen) < kRounding);
  CHECK(std::abs(shares.gate(0, 0) - std::exp(0.3) / chosen) < kRounding);
  CHECK(std::abs(raw.gate(0, 2) - std::exp(2.0) / total) < kRounding);
  CHECK(std::abs(raw.gate(0, 0) - std::exp(0.3) / total) < kRounding);
  CHECK(raw.gate(0, 1) == 0);
  // Unset: for K > 1.
  CHECK(Gated(TopKGatingOptions{.k = 2}, rows).gate(0, 2) == shares.gate(0, 2));
  CHECK(Gated(TopKGatingOptions{.k = 1}, rows).gate(0, 2) == raw.gate(0, 2));
}

TEST_CASE("soft gating skips gates below the threshold, the threshold itself not") {
  const double log_half = std::log(0.5);
  const std::vector<std::vector<double>> rows = {{log_half, log_half, -800}, {0, 0, 0}};
  const Gated soft(SoftGatingOptions{.skip_below = 0.5}, rows);
  CHECK(soft.gate(0, 0) == 0.5);
  CHECK(soft.gate(0, 2) == 0);
  CHECK(soft.routing().offsets == std::vector<int>{0, 1, 2, 2});
  CHECK(Gated(SoftGatingOptions{.skip_below = 1e-8}, {{0, 0, 0}}).routing().every_pair);
  CHECK(Gated(SoftGatingOptions{}, rows).routing().every_pair);
}

TEST_CASE("what a scenario's gating means") {
  const auto read = [](const Json& given) { return resolve_options<GatingRule>(given, "gating"); };
  CHECK_FALSE(read("soft").as<SoftGatingOptions>()->skip_below.has_value());
  CHECK(read({{"kind", "soft"}, {"skip_below", 0}}).as<SoftGatingOptions>()->skip_below == 0.0);
  CHECK(read("top1").as<Top1GatingOptions>() != nullptr);
  CHECK_FALSE(read({{"kind", "topk"}, {"k", 2}}).as<TopKGatingOptions>()->renormalize.has_value());
  CHECK(read({{"kind", "topk"}, {"k", 2}, {"renormalize", false}}).as<TopKGatingOptions>()->renormalize ==
        false);
  CHECK_THROWS_AS(read("topk"), UserError);
}

using Drop = CapacityOptions::Drop;

/// Σ_ie c_ie gate_ie over the active pairs, and the loss of the gating's own.
double weighted_gates(const Gated& gated, const std::vector<double>& weights) {
  double sum = gated.gating->added_loss(gated.context, gated.scratch);
  for (int i = 0; i < gated.routing().rows; ++i) {
    for (int e = 0; e < gated.routing().experts; ++e) {
      sum += weights[size(i * gated.routing().experts + e)] * gated.gate(i, e);
    }
  }
  return sum;
}

TEST_CASE("gradients of every gating agree with central differences") {
  constexpr int kRows = 6, kExperts = 5;
  // Truncation leaves step² f‴/6 ≈ 1e-12 in a difference, rounding ε L / step ≈ 1e-9.
  constexpr double kStep = 1e-6, kLargestError = 1e-8;
  std::vector<GatingRule> rules = {SoftGatingOptions{.skip_below = 0.05},
                                   TopKGatingOptions{.k = 2, .renormalize = false},
                                   TopKGatingOptions{.k = 1},
                                   TopPGatingOptions{.p = 0.2, .renormalize = false},
                                   TopPGatingOptions{.p = 0.2, .learnable = true},
                                   TopPGatingOptions{.p = 0.2, .learnable = true, .renormalize = false},
                                   Top1GatingOptions{.capacity = {.capacity_factor = 0.7}},
                                   SigmoidGatingOptions{},
                                   SigmoidGatingOptions{.k = 1},
                                   SigmoidGatingOptions{.renormalize = true},
                                   NoisyTopKGatingOptions{.k = 1},
                                   NoisyTopKGatingOptions{.noise = NoisyTopKGatingOptions::Noise::uniform},
                                   ReluGatingOptions{.k = 2, .l1_start = 0.5},
                                   SinkhornGatingOptions{.k = 2}};
  rules.push_back(BalancedAssignmentGatingOptions{});
  rules.push_back(DenseToSparseGatingOptions{.threshold = 0.1, .renormalize = true});
  rules.push_back(DenseToSparseGatingOptions{.tau = 0.5, .threshold = 0.9, .gumbel = false});
  rules.push_back(SoftSlotsGatingOptions{.slots = 1});
  rules.push_back(SoftSlotsGatingOptions{.slots = 3});
  for (const Drop drop : {Drop::order, Drop::probability, Drop::random, Drop::next}) {
    rules.push_back(TopKGatingOptions{.k = 2, .capacity = {.capacity_factor = 0.7, .drop = drop}});
    rules.push_back(SigmoidGatingOptions{.k = 2, .capacity = {.capacity_factor = 0.7, .drop = drop}});
  }
  for (const GatingKind& kind : GatingAxis::table()) rules.push_back(GatingRule::example(kind.name));
  Engine engine(3);
  std::vector<std::vector<double>> rows(kRows, std::vector<double>(kExperts));
  for (std::vector<double>& row : rows) {
    for (double& score : row) score = draw_normal(engine);
  }
  std::vector<double> weights(kRows * kExperts);
  for (double& weight : weights) weight = draw_normal(engine);
  for (const GatingRule& rule : rules) {
    CAPTURE(rule.chosen());
    Gated gated(rule, rows, {}, true);
    const int stride = gated.routing().stride;
    for (double& parameter : gated.parameters) parameter += 0.1 * draw_normal(engine);
    gated.gating->gate(gated.context, gated.scratch);
    AlignedVector<double> gate_gradient(entries(kRows, stride)), gradient(gated.parameters.size(), 99.0);
    for (int i = 0; i < kRows; ++i) {
      for (int e = 0; e < kExperts; ++e) {
        gate_gradient[entries(i, stride) + size(e)] = weights[size(i * kExperts + e)];
      }
    }
    gated.gating->backward(gated.context, gated.scratch, gate_gradient.data(), gate_gradient.data(),
                           gradient.empty() ? nullptr : gradient.data());
    constexpr int kInputStride = kernels::padded(Gated::kInputs);
    AlignedVector<double> of_inputs(entries(kRows, kInputStride));
    gated.gating->add_own_gradient(gated.context, gated.scratch, gate_gradient.data(),
                                   gradient.empty() ? nullptr : gradient.data(),
                                   kernels::padded_rows(of_inputs.data(), kRows, Gated::kInputs));
    const auto difference = [&](double& variable) {
      const double kept = variable;
      const auto value_at = [&](double value) {
        variable = value;
        gated.gating->gate(gated.context, gated.scratch);
        return weighted_gates(gated, weights);
      };
      const double slope = (value_at(kept + kStep) - value_at(kept - kStep)) / (2 * kStep);
      variable = kept;
      return slope;
    };
    for (int i = 0; i < kRows; ++i) {
      for (int e = 0; e < stride; ++e) {
        const std::size_t at = entries(i, stride) + size(e);
        const double expected = e < kExperts ? difference(gated.scores[at]) : 0.0;
        CHECK(std::abs(gate_gradient[at] - expected) < kLargestError);
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < Gated::kInputs; ++j) {
        const double exact = of_inputs[entries(i, kInputStride) + size(j)];
        CHECK(std::abs(exact - difference(gated.x[size(i * Gated::kInputs + j)])) < kLargestError);
      }
    }
    for (std::size_t at = 0; at < gradient.size(); ++at) {
      CHECK(std::abs(gradient[at] - difference(gated.parameters[at])) < kLargestError);
    }
  }
}

TEST_CASE("soft gates may leave rows where they skip pairs above 1/E") {
  const auto may_leave = [](double skip_below) {
    const GatingRule rule = SoftGatingOptions{.skip_below = skip_below};
    return rule.entry().may_leave_rows(rule.options(), 4);
  };
  CHECK_FALSE(may_leave(0));
  CHECK_FALSE(may_leave(0.25));
  CHECK(may_leave(0.26));
}

TEST_CASE("what every gating promises: gates of its pairs alone, and experts that serve") {
  Engine engine(4);
  std::vector<std::vector<double>> rows(20, std::vector<double>(7));
  for (std::vector<double>& row : rows) {
    for (double& score : row) score = draw_normal(engine);
  }
  for (const GatingKind& kind : GatingAxis::table()) {
    CAPTURE(kind.name);
    const GatingRule rule = GatingRule::example(kind.name);
    const Gated gated(rule, rows), biased(rule, rows, {0, 0, 0, 0, 0, 0, 2});
    const bool may_leave_rows = kind.may_leave_rows && kind.may_leave_rows(rule.options(), gated.experts);
    CHECK(gated.gating->selects() == kind.selects);
    CHECK(gated.gating->block_size() % kernels::kPadding == 0);
    const int limit = kind.most_experts ? kind.most_experts(rule.options()) : 0;
    const int most = limit > 0 ? limit : 7;
    double change = 0;
    for (int row = 0; row < 20; ++row) {
      int active = 0;
      for (int e = 0; e < 7; ++e) {
        CHECK(gated.gate(row, e) >= 0);
        active += gated.gate(row, e) > 0;
        change += std::abs(gated.gate(row, e) - biased.gate(row, e));
      }
      CHECK(active <= most);
      const int serving = serving_expert(gated.routing(), row);
      CHECK((serving >= 0) == (active > 0));
      if (!may_leave_rows) CHECK(serving >= 0);
      for (int e = 0; e < 7 && serving >= 0; ++e) CHECK(gated.gate(row, e) <= gated.gate(row, serving));
    }
    // Biases have an effect where experts are selected, and nowhere else.
    CHECK((change > 0) == kind.selects);
  }
}

}  // namespace
}  // namespace moelab::gating_test
