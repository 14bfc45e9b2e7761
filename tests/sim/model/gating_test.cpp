#include "sim/model/gating.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// A softmax of two or three scores in double.
constexpr double kRounding = 1e-15;

/// Gates of rows of three scores.
GatingState<double> gated(const Gating& gating, const std::vector<std::vector<double>>& rows) {
  const int stride = kernels::padded(3);
  AlignedVector<double> scores(rows.size() * static_cast<std::size_t>(stride));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < 3; ++j) scores[i * static_cast<std::size_t>(stride) + j] = rows[i][j];
  }
  GatingState<double> state;
  gate(gating, scores.data(), static_cast<int>(rows.size()), 3, state);
  return state;
}

double gate_at(const GatingState<double>& state, int row, int expert) {
  return state.routing.gates[row * state.routing.stride + expert];
}

TEST_CASE("ties go to the lower index, and pairs are listed by expert with ascending rows") {
  const std::vector<std::vector<double>> rows = {{1, 1, 1}, {0, 2, 2}, {3, 0, 3}};
  const GatingState<double> top1 = gated({Gating::Kind::top1}, rows);
  CHECK(gate_at(top1, 0, 0) == 1);
  CHECK(gate_at(top1, 1, 1) == 1);
  CHECK(gate_at(top1, 2, 0) == 1);
  CHECK(top1.routing.offsets == std::vector<int>{0, 2, 3, 3});
  CHECK(top1.routing.pair_rows == std::vector<int>{0, 2, 1});
  CHECK_FALSE(top1.routing.every_pair);

  const GatingState<double> top2 = gated({Gating::Kind::topk, 2, true}, rows);
  CHECK(top2.routing.offsets == std::vector<int>{0, 2, 4, 6});
  CHECK(top2.routing.pair_rows == std::vector<int>{0, 2, 0, 1, 1, 2});
  for (const auto& [row, expert] : {std::pair{0, 0}, {0, 1}, {1, 1}, {1, 2}, {2, 0}, {2, 2}}) {
    CHECK(std::abs(gate_at(top2, row, expert) - 0.5) < kRounding);
  }
  CHECK(gate_at(top2, 0, 2) == 0);
}

TEST_CASE("topp activates every expert above the threshold, or the likeliest") {
  // Probabilities 2/3, 1/4, 1/12 in the first row, uniform in the second.
  const std::vector<std::vector<double>> rows = {{std::log(8.0), std::log(3.0), 0}, {1, 1, 1}};
  Gating gating{Gating::Kind::topp};
  gating.p = 0.1;
  const GatingState<double> some = gated(gating, rows);
  CHECK(std::abs(gate_at(some, 0, 0) - 8.0 / 11) < kRounding);
  CHECK(std::abs(gate_at(some, 0, 1) - 3.0 / 11) < kRounding);
  CHECK(gate_at(some, 0, 2) == 0);
  CHECK(some.routing.offsets == std::vector<int>{0, 2, 4, 5});
  gating.p = 0.9;
  gating.renormalize = false;
  const GatingState<double> likeliest = gated(gating, rows);
  CHECK(std::abs(gate_at(likeliest, 0, 0) - 2.0 / 3) < kRounding);
  CHECK(likeliest.routing.offsets == std::vector<int>{0, 2, 2, 2});
}

TEST_CASE("a learnable threshold: the same experts, gates by how far they exceed it") {
  const std::vector<std::vector<double>> rows = {{std::log(8.0), std::log(3.0), 0}, {1, 1, 1}};
  Gating gating{Gating::Kind::topp};
  gating.p = 0.1;
  gating.learnable = true;
  const GatingState<double> some = gated(gating, rows);
  // Excesses 2/3 − 1/10 = 17/30 and 1/4 − 1/10 = 3/20.
  CHECK(std::abs(gate_at(some, 0, 0) - 34.0 / 43) < kRounding);
  CHECK(std::abs(gate_at(some, 0, 1) - 9.0 / 43) < kRounding);
  CHECK(gate_at(some, 0, 2) == 0);
  CHECK(some.routing.offsets == std::vector<int>{0, 2, 4, 5});
  gating.renormalize = false;
  CHECK(std::abs(gate_at(gated(gating, rows), 0, 1) - 0.15) < kRounding);
  gating.p = 0.9;  // none is above: the likeliest, alone
  CHECK(gate_at(gated(gating, rows), 0, 0) == 1);
  CHECK(gate_at(gated(gating, rows), 0, 1) == 0);
}

TEST_CASE("a bias of the selection chooses, and the gates stay those of the probabilities") {
  const int stride = kernels::padded(3);
  AlignedVector<double> scores(static_cast<std::size_t>(stride));
  scores[0] = std::log(2.0);  // probabilities 1/2, 1/4, 1/4
  const double bias[] = {0, 0, 0.3};
  GatingState<double> state;
  gate({Gating::Kind::topk, 1, false}, scores.data(), 1, 3, state, bias);
  CHECK(gate_at(state, 0, 0) == 0);
  CHECK(std::abs(gate_at(state, 0, 2) - 0.25) < kRounding);
}

TEST_CASE("renormalised top-k gates are the softmax over the chosen scores; raw ones the probabilities") {
  const std::vector<std::vector<double>> rows = {{0.3, -1.2, 2.0}};
  const double total = std::exp(0.3) + std::exp(-1.2) + std::exp(2.0), chosen = std::exp(0.3) + std::exp(2.0);
  const GatingState<double> shares = gated({Gating::Kind::topk, 2, true}, rows);
  const GatingState<double> raw = gated({Gating::Kind::topk, 2, false}, rows);
  CHECK(std::abs(gate_at(shares, 0, 2) - std::exp(2.0) / chosen) < kRounding);
  CHECK(std::abs(gate_at(shares, 0, 0) - std::exp(0.3) / chosen) < kRounding);
  CHECK(std::abs(gate_at(raw, 0, 2) - std::exp(2.0) / total) < kRounding);
  CHECK(std::abs(gate_at(raw, 0, 0) - std::exp(0.3) / total) < kRounding);
  CHECK(gate_at(raw, 0, 1) == 0);
}

TEST_CASE("soft gating skips gates below the threshold, the threshold itself not") {
  const double log_half = std::log(0.5);
  const std::vector<std::vector<double>> rows = {{log_half, log_half, -800}, {0, 0, 0}};
  const GatingState<double> soft = gated({Gating::Kind::soft, 1, true, 0.5}, rows);
  CHECK(gate_at(soft, 0, 0) == 0.5);
  CHECK(gate_at(soft, 0, 2) == 0);
  CHECK(soft.routing.offsets == std::vector<int>{0, 1, 2, 2});
  CHECK(gated({Gating::Kind::soft, 1, true, 1e-8}, {{0, 0, 0}}).routing.every_pair);
  CHECK(gated({}, rows).routing.every_pair);
}

TEST_CASE("what a gating object means, with its defaults") {
  const auto read = [](const Json& spec) {
    return read_gating(resolve(Shape::variant(gating_kinds()), spec, "gating"), 1e-8);
  };
  CHECK(read("soft").skip_below == 1e-8);
  CHECK(read({{"kind", "soft"}, {"skip_below", 0}}).skip_below == 0);
  CHECK(read("top1").kind == Gating::Kind::top1);
  CHECK(read({{"kind", "topk"}, {"k", 2}}).renormalize);
  CHECK_FALSE(read({{"kind", "topk"}, {"k", 1}}).renormalize);
  CHECK_FALSE(read({{"kind", "topk"}, {"k", 2}, {"renormalize", false}}).renormalize);
  CHECK_THROWS_AS(read("topk"), UserError);
}

}  // namespace
}  // namespace moelab
