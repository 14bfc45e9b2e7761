#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/model/gradient_check.h"

namespace moelab::auxiliary_losses_test {
namespace {

constexpr int kExperts = 4, kRows = 12;
const Layout kLayout{.input_dim = 4, .output_dim = 3};

/// Rounding of a dozen sums of doubles of order one.
constexpr double kRounding = 1e-12;

LossOptions losses_with(const std::string& term, double coefficient) {
  LossOptions options;
  options.coefficient(term) = coefficient;
  return options;
}

/// A batch given by its probabilities (n, E ≤ 16) and gates; scores are logarithms of the probabilities.
struct HandBatch {
  static constexpr int kStride = 16;
  std::vector<double> probabilities, gates, scores, outputs;
  Routing<double> routing;
  RoutedBatch<double> batch;

  HandBatch(const std::vector<std::vector<double>>& r, const std::vector<std::vector<double>>& g) {
    const std::size_t rows = r.size();
    routing.rows = static_cast<int>(rows);
    routing.experts = static_cast<int>(r[0].size());
    routing.stride = kStride;
    for (auto* array : {&probabilities, &gates, &scores}) array->assign(rows * kStride, 0.0);
    routing.offsets.assign(r[0].size() + 1, 0);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t e = 0; e < r[i].size(); ++e) {
        probabilities[i * kStride + e] = r[i][e];
        scores[i * kStride + e] = std::log(r[i][e]);
        gates[i * kStride + e] = g[i][e];
        if (g[i][e] == 0) continue;
        routing.row_experts.push_back(static_cast<int>(e));
        for (std::size_t later = e + 1; later < routing.offsets.size(); ++later) ++routing.offsets[later];
      }
      routing.row_ends.push_back(static_cast<int>(routing.row_experts.size()));
    }
    routing.gates = gates.data();
    batch = {scores.data(), probabilities.data(), &routing, nullptr, kStride};
  }
  HandBatch(const HandBatch&) = delete;
};

double value_of(const RoutedBatch<double>& batch, const std::string& term) {
  AuxiliaryScratch scratch;
  return auxiliary_loss_kinds()[auxiliary_loss_place(term)].value.in_double(batch, scratch);
}

TEST_CASE("the balance terms of a batch worked out by hand") {
  // Three rows of top-1: experts 0, 0, 1; mean probabilities (0.5, 0.35, 0.15).
  const HandBatch hand({{.7, .2, .1}, {.6, .3, .1}, {.2, .55, .25}}, {{.7, 0, 0}, {.6, 0, 0}, {0, .55, 0}});
  const double weighted = 2.0 / 3 * .5 + 1.0 / 3 * .35;
  CHECK(value_of(hand.batch, "aux") == doctest::Approx(3 * weighted).epsilon(kRounding));
  CHECK(value_of(hand.batch, "switch") == doctest::Approx(3 * weighted).epsilon(kRounding));
  CHECK(value_of(hand.batch, "gshard") == doctest::Approx(weighted / 3).epsilon(kRounding));
  // Shares of rows times summed scores: 2/3 · 1.5 + 1/3 · 1.05.
  CHECK(value_of(hand.batch, "aux_unnormalised") ==
        doctest::Approx(2.0 / 3 * 1.5 + 1.0 / 3 * 1.05).epsilon(kRounding));
  // Scores are logarithms of probabilities: every logsumexp is 0.
  CHECK(std::abs(value_of(hand.batch, "z")) < kRounding);
}

TEST_CASE("the balance terms of a batch without an active pair are 0") {
  const HandBatch unserved({{.7, .3}, {.6, .4}}, {{0, 0}, {0, 0}});
  for (const char* kind : {"aux", "aux_unnormalised", "aux_sequence", "aux_mixed"}) {
    CAPTURE(kind);
    CHECK(value_of(unserved.batch, kind) == 0);
  }
}

TEST_CASE("balance within groups of sequences: the groups by hand, and the whole batch as one group") {
  // Two sequences of two tokens. The first goes to expert 0, the second to expert 1.
  HandBatch hand({{.8, .2}, {.6, .4}, {.3, .7}, {.1, .9}}, {{1, 0}, {1, 0}, {0, 1}, {0, 1}});
  hand.batch.tokens = 2;
  // Each sequence has f = (1, 0) or (0, 1): twice the mean probability of its expert, 0.7 and 0.8.
  CHECK(value_of(hand.batch, "aux_sequence") == doctest::Approx(2 * (.7 + .8) / 2).epsilon(kRounding));
  // Groups of all sequences, {0, 3} and {1, 2}, have f = (1/2, 1/2): the term is 1, as for the batch.
  CHECK(value_of(hand.batch, "aux_mixed") == doctest::Approx(1).epsilon(kRounding));
  CHECK(value_of(hand.batch, "aux") == doctest::Approx(1).epsilon(kRounding));
  hand.batch.group = 2;
  for (const char* term : {"aux_sequence", "aux_mixed"}) {
    CHECK(value_of(hand.batch, term) == doctest::Approx(value_of(hand.batch, "aux")).epsilon(kRounding));
  }
  // Rows 0 and 1 of the first sequence share a group with rows 3 and 2: loads are uneven within groups.
  HandBatch uneven({{.8, .2}, {.6, .4}, {.3, .7}, {.1, .9}}, {{1, 0}, {0, 1}, {0, 1}, {1, 0}});
  uneven.batch.tokens = 2;
  CHECK(value_of(uneven.batch, "aux_sequence") == doctest::Approx(1).epsilon(kRounding));
  CHECK(value_of(uneven.batch, "aux_mixed") == doctest::Approx(2 * (.45 + .55) / 2).epsilon(kRounding));
}

TEST_CASE("a group of several sequences reaches the terms through loss.aux_group") {
  HandBatch hand({{.8, .2}, {.6, .4}, {.3, .7}, {.1, .9}}, {{1, 0}, {1, 0}, {0, 1}, {0, 1}});
  hand.batch.tokens = 2;
  LossOptions options = losses_with("aux_sequence", 1);
  AuxiliaryScratch scratch;
  CHECK(AuxiliaryLosses(options).weighted_sum(hand.batch, scratch) == doctest::Approx(1.5));
  options.aux_group = 2;
  CHECK(AuxiliaryLosses(options).weighted_sum(hand.batch, scratch) == doctest::Approx(1));
}

TEST_CASE("the terms of importance and of entropy of a batch worked out by hand") {
  // The same rows: sums of gates 1.3, 0.55 and 0; mean probabilities 0.5, 0.35 and 0.15.
  const HandBatch hand({{.7, .2, .1}, {.6, .3, .1}, {.2, .55, .25}}, {{.7, 0, 0}, {.6, 0, 0}, {0, .55, 0}});
  const double mean = 1.85 / 3, square = (1.3 * 1.3 + .55 * .55) / 3;
  const double guard = 1e-8;  // 1e-10 beside the squared mean
  CHECK(value_of(hand.batch, "importance") == doctest::Approx(square / (mean * mean) - 1).epsilon(guard));
  CHECK(value_of(hand.batch, "importance_probabilities") ==
        doctest::Approx(3 * (.25 + .1225 + .0225) - 1).epsilon(guard));
  const auto entropy = [](double p, double q, double r) {
    return -p * std::log(p) - q * std::log(q) - r * std::log(r);
  };
  const double rows = (entropy(.7, .2, .1) + entropy(.6, .3, .1) + entropy(.2, .55, .25)) / 3;
  CHECK(value_of(hand.batch, "routing_entropy") == doctest::Approx(rows).epsilon(kRounding));
  CHECK(value_of(hand.batch, "mutual_information") ==
        doctest::Approx(rows - entropy(.5, .35, .15)).epsilon(kRounding));
  // Decided rows with even loads: no entropy, and all of log E as information.
  const HandBatch decided({{1, 0}, {0, 1}}, {{1, 0}, {0, 1}});
  CHECK(value_of(decided.batch, "routing_entropy") == 0);
  CHECK(value_of(decided.batch, "mutual_information") == doctest::Approx(-std::log(2)).epsilon(kRounding));
  CHECK(value_of(decided.batch, "importance") == 0);
}

TEST_CASE("the load under new noise of a batch worked out by hand") {
  // One row, K = 1: γ = (1, 0), s = (1, 2), noise (1, 0) makes h = (2, 0). The first is selected, its
  // threshold is the second's h = 0. The second's threshold is the first's h = 2: Φ(1) and Φ(−1).
  const HandBatch hand({{.7, .3}}, {{.7, 0}});
  std::vector<double> scores(HandBatch::kStride), noisy(HandBatch::kStride), spreads(HandBatch::kStride, 1.0);
  scores[0] = 1;
  noisy[0] = 2;
  spreads[1] = 2;
  const NoisyScores<double> noise{1, noisy.data(), spreads.data()};
  RoutedBatch<double> batch = hand.batch;
  batch.scores = scores.data();
  batch.noise = &noise;
  const auto chance = [](double a) { return std::erfc(-a / std::sqrt(2.0)) / 2; };
  const double mean = (chance(1) + chance(-1)) / 2, half = (chance(1) - chance(-1)) / 2;
  CHECK(value_of(batch, "load") == doctest::Approx(half * half / (mean * mean)).epsilon(1e-8));
  // Without noise, and where every expert is selected, the numbers of rows: 1 and 0, or 1 and 1.
  CHECK(value_of(hand.batch, "load") == doctest::Approx(1).epsilon(1e-8));
  const NoisyScores<double> both{2, noisy.data(), spreads.data()};
  batch.noise = &both;
  const HandBatch all({{.7, .3}}, {{.7, .3}});
  batch.routing = &all.routing;
  CHECK(value_of(batch, "load") == 0);
}

TEST_CASE("normalised balance is 1 when either factor is uniform, and can be below 1") {
  const double third = 1.0 / 3;
  const HandBatch uniform_r({{third, third, third}, {third, third, third}}, {{third, 0, 0}, {third, 0, 0}});
  CHECK(value_of(uniform_r.batch, "aux") == doctest::Approx(1).epsilon(kRounding));
  const HandBatch uniform_load({{.8, .1, .1}, {.5, .4, .1}, {.4, .3, .3}},
                               {{.8, 0, 0}, {0, .4, 0}, {0, 0, .3}});
  CHECK(value_of(uniform_load.batch, "aux") == doctest::Approx(1).epsilon(kRounding));
  // Most rows narrowly choose expert 0, the rest has its mass elsewhere: loads and means disagree.
  const HandBatch below({{.4, .35, .25}, {.4, .35, .25}, {.02, .48, .5}},
                        {{.4, 0, 0}, {.4, 0, 0}, {0, 0, .5}});
  CHECK(value_of(below.batch, "aux") < 1);
}

TEST_CASE("orthogonality and variance of a batch worked out by hand") {
  HandBatch hand({{.5, .5}, {.9, .1}}, {{.5, .5}, {.9, .1}});
  hand.routing.every_pair = true;
  std::vector<double> outputs(2 * 2 * HandBatch::kStride, 0.0);
  outputs[0] = 2;  // row 0: (2, 0) and (1, 1)
  outputs[HandBatch::kStride] = 1;
  outputs[HandBatch::kStride + 1] = 1;
  outputs[2 * HandBatch::kStride] = 3;  // row 1: (3, 0) and (0, 1), orthogonal
  outputs[3 * HandBatch::kStride + 1] = 1;
  hand.batch.pair_outputs = outputs.data();
  // Row 0: (x_a·x_b)² = 4, over ‖x_b‖² = 2 and ‖x_a‖² = 4: 2 + 1; mean over two rows.
  const double guard = 10 * kOrthogonalityGuard;
  CHECK(value_of(hand.batch, "orthogonality") == doctest::Approx(1.5).epsilon(guard));
  CHECK(value_of(hand.batch, "orthogonality_cosine") == doctest::Approx(.5).epsilon(guard));
  // By expert: (2, 0) with (3, 0), and (1, 1) with (0, 1): 36 (1/4 + 1/9) and 1/2 + 1.
  CHECK(value_of(hand.batch, "orthogonality_listed") == doctest::Approx((13 + 1.5) / 2).epsilon(guard));
  // Rows (0.5, 0.5) and (0.9, 0.1): variances 0 and 0.32 with one degree of freedom.
  CHECK(value_of(hand.batch, "variance_rows") == doctest::Approx(-.16).epsilon(kRounding));
  // Columns (0.5, 0.9) and (0.5, 0.1): variance 0.04 each.
  CHECK(value_of(hand.batch, "variance") == doctest::Approx(-.04).epsilon(kRounding));
  CHECK(value_of(hand.batch, "variance_probabilities") == doctest::Approx(-.04).epsilon(kRounding));
}

TEST_CASE("shrinking the experts' outputs lowers orthogonality, but not its cosine form") {
  HandBatch hand({{.5, .5}}, {{.5, .5}});
  hand.routing.every_pair = true;
  std::vector<double> outputs(2 * HandBatch::kStride, 0.0);
  outputs[0] = outputs[HandBatch::kStride] = 2;
  outputs[HandBatch::kStride + 1] = 1;
  hand.batch.pair_outputs = outputs.data();
  const double projection = value_of(hand.batch, "orthogonality");
  const double cosine = value_of(hand.batch, "orthogonality_cosine");
  for (double& output : outputs) output *= 0.1;
  CHECK(value_of(hand.batch, "orthogonality") == doctest::Approx(.01 * projection).epsilon(1e-6));
  CHECK(value_of(hand.batch, "orthogonality_cosine") == doctest::Approx(cosine).epsilon(1e-6));
}

TEST_CASE("gradients of every auxiliary loss agree with central differences") {
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  for (const AuxiliaryLossKind& term : auxiliary_loss_kinds()) {
    for (const ExpertKind& expert : ExpertAxis::table()) {
      for (const NamedGating& gating : example_gatings()) {
        // Its gates of single rows are constant, and so are the terms: there is nothing to compare.
        if (gating.name == "patch_choice") continue;
        CAPTURE(term.name);
        CAPTURE(expert.name);
        CAPTURE(gating.name);
        ExampleModel<double> model(model_of_kinds("linear", expert.name, gating.rule, kExperts), kLayout,
                                   {5, 0});
        // Large beside the task's gradient, so that the term's own is what is compared.
        model.losses = AuxiliaryLosses(losses_with(term.name, 10));
        check_parameter_gradients(model, kRows, *task);
      }
    }
  }
}

TEST_CASE("losses on outputs leave the router's gradient alone, all others the experts'") {
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  const auto gradients = [&](const std::string& term, double coefficient) {
    const bool needs_noise = auxiliary_loss_kinds()[auxiliary_loss_place(term)].needs_noise;
    const GatingRule gating =
        needs_noise ? GatingRule(NoisyTopKGatingOptions{}) : GatingRule(TopKGatingOptions{.k = 2});
    const ModelOptions options = model_of_kinds("linear", "linear", gating, kExperts);
    ExampleModel<double> model(options, kLayout, {5, 0});
    model.losses = AuxiliaryLosses(losses_with(term, coefficient));
    model.loss_and_gradient(model.batch(1, kRows), *task);
    return std::pair(gradient_of(model, model.groups()[0]), gradient_of(model, model.groups()[1]));
  };
  for (const AuxiliaryLossKind& term : auxiliary_loss_kinds()) {
    CAPTURE(term.name);
    const auto [router, experts] = gradients(term.name, 1);
    const auto [plain_router, plain_experts] = gradients(term.name, 0);
    const bool is_of_outputs = term.path == AuxiliaryPath::pair_outputs;
    CHECK((experts == plain_experts) == !is_of_outputs);
    // Without a step that moves experts first, locality is zero.
    CHECK((router == plain_router) == (is_of_outputs || term.needs_moves));
  }
}

TEST_CASE("terms are weighed by their coefficients, and only those with one are looked at") {
  const HandBatch hand({{.7, .2, .1}, {.6, .3, .1}, {.2, .55, .25}}, {{.7, 0, 0}, {.6, 0, 0}, {0, .55, 0}});
  LossOptions options = losses_with("z", 0.5);
  options.coefficient("variance") = 2;
  const AuxiliaryLosses losses(options);
  AuxiliaryScratch scratch;
  const std::vector<double> values = losses.values(hand.batch, scratch);
  REQUIRE(values.size() == auxiliary_loss_kinds().size());
  double expected = 0;
  for (std::size_t t = 0; t < values.size(); ++t) {
    CHECK(values[t] == value_of(hand.batch, auxiliary_loss_kinds()[t].name));
    expected += losses.coefficient(t) * values[t];
  }
  CHECK(losses.weighted_sum(hand.batch, scratch) == doctest::Approx(expected).epsilon(kRounding));
  CHECK(losses.reads(AuxiliaryPath::scores));
  CHECK(losses.reads(AuxiliaryPath::gates));
  CHECK_FALSE(losses.reads(AuxiliaryPath::probabilities));
  CHECK_FALSE(losses.reads(AuxiliaryPath::pair_outputs));
  CHECK_FALSE(losses.empty());
  CHECK(AuxiliaryLosses(LossOptions{}).empty());
  CHECK(AuxiliaryLosses().empty());
  CHECK_THROWS_AS(losses_with("zz", 1), std::invalid_argument);
}

}  // namespace
}  // namespace moelab::auxiliary_losses_test
