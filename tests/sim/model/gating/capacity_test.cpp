/// Limits on the rows of an expert.

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/model/gating/selection.h"
#include "tests/sim/model/gating/gated.h"

namespace moelab::capacity_test {
namespace {

using Drop = CapacityOptions::Drop;

/// Five rows that prefer the first of two experts, the later the more, and one that does not.
const std::vector<std::vector<double>> kRows = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {0, 1}};

Gated top1(Drop drop, double factor = 1, bool training = false, int group_rows = 0) {
  return {Top1GatingOptions{.capacity = {.capacity_factor = factor, .drop = drop}},
          kRows,
          {},
          training,
          group_rows};
}

TEST_CASE(
    "an expert keeps ⌈factor · pairs / E⌉ rows: by order, by probability, or the next expert takes them") {
  const Gated by_order = top1(Drop::order);
  CHECK(by_order.rows_of_expert(0) == std::vector<int>{0, 1, 2});
  CHECK(by_order.rows_of_expert(1) == std::vector<int>{5});
  CHECK(serving_expert(by_order.routing(), 3) == -1);
  CHECK(by_order.routing().pairs_of(0) == 3);
  CHECK(top1(Drop::probability).rows_of_expert(0) == std::vector<int>{2, 3, 4});
  const Gated to_next = top1(Drop::next);
  CHECK(to_next.rows_of_expert(0) == std::vector<int>{0, 1, 2});
  CHECK(to_next.rows_of_expert(1) == std::vector<int>{3, 4, 5});
  // 3 · 0.8 is 2.4, and 3 · 1.1 not above 4; no limit above all rows.
  CHECK(top1(Drop::order, 0.8).rows_of_expert(0).size() == 3);
  CHECK(top1(Drop::order, 1.1).rows_of_expert(0).size() == 4);
  CHECK(capacity_of(0.07, 100) == 7);  // the product is 7.000000000000001
  CHECK(capacity_of(1e12, 100) >= 100);
  CHECK(top1(Drop::order, 2).rows_of_expert(0).size() == 5);
  CHECK(top1(Drop::order, 0.01).rows_of_expert(0).size() == 1);
}

TEST_CASE("rows that are routed together have a capacity of their own") {
  const Gated halves = top1(Drop::order, 1, false, 3);
  CHECK(halves.rows_of_expert(0) == std::vector<int>{0, 1, 3, 4});
  const Gated next = top1(Drop::next, 1, false, 2);
  CHECK(next.rows_of_expert(0) == std::vector<int>{0, 2, 4});
  CHECK(next.gating->couples_rows());
  CHECK_FALSE(Gated(Top1GatingOptions{}, kRows).gating->couples_rows());
}

TEST_CASE("rows dropped at random: others in another step, the same in measuring") {
  Gated gated = top1(Drop::random, 1, true);
  const std::vector<int> before = gated.rows_of_expert(0);
  CHECK(before.size() == 3);
  std::vector<int> times(5, 0);
  for (int step = 0; step < 400; ++step) {
    gated.gating->begin_step(gated.state.data());
    gated.gating->gate(gated.context, gated.scratch);
    for (const int row : gated.rows_of_expert(0)) ++times[size(row)];
  }
  // 400 draws with probability 3/5: four standard errors are 39.
  for (const int count : times) CHECK(std::abs(count - 240) < 39);
  CHECK(top1(Drop::random).rows_of_expert(0) == top1(Drop::random).rows_of_expert(0));
}

TEST_CASE("first choices come before second ones, and the gates of what stays are those before the drop") {
  // Each row has two of three experts; the first expert is the second choice of rows 0 and 1.
  const std::vector<std::vector<double>> rows = {{1, 2, 0}, {1, 2, 0}, {2, 0, 1}};
  const TopKGatingOptions options{.k = 2, .capacity = {.capacity_factor = 0.5}};  // one row of six pairs
  const Gated gated(options, rows), all(TopKGatingOptions{.k = 2}, rows);
  CHECK(gated.rows_of_expert(0) == std::vector<int>{2});
  CHECK(gated.rows_of_expert(1) == std::vector<int>{0});
  CHECK(gated.rows_of_expert(2) == std::vector<int>{2});
  CHECK(gated.gate(0, 1) == all.gate(0, 1));
  CHECK(gated.gate(1, 1) == 0);
  CHECK(serving_expert(gated.routing(), 1) == -1);
}

TEST_CASE("gates of experts that are so much less likely than others that their r is 0") {
  // The first row takes the places of experts 0 and 1; r of the others is 0 in the second.
  const std::vector<std::vector<double>> rows = {{2000, 2000, 0, 0}, {2000, 2000, 1, 0}};
  const double share = 1 / (1 + std::exp(-1.0));
  const TopKGatingOptions topk{.k = 2, .capacity = {.capacity_factor = 1, .drop = Drop::next}};
  const NoisyTopKGatingOptions noisy{.k = 2, .capacity = {.capacity_factor = 1, .drop = Drop::next}};
  for (const GatingRule& rule : {GatingRule(topk), GatingRule(noisy)}) {
    const Gated gated(rule, rows);
    CHECK(gated.probability(1, 2) == 0);
    CHECK(gated.gate(0, 0) == 0.5);
    CHECK(gated.gate(1, 2) == doctest::Approx(share).epsilon(1e-14));
    CHECK(gated.gate(1, 3) == doctest::Approx(1 - share).epsilon(1e-14));
  }
}

TEST_CASE("what a scenario may say of a capacity") {
  const auto read = [](const Json& given) { return resolve_options<GatingRule>(given, "gating"); };
  const GatingRule rule =
      read({{"kind", "topk"}, {"k", 2}, {"capacity_factor", 1.25}, {"drop", "probability"}});
  CHECK(rule.as<TopKGatingOptions>()->capacity.capacity_factor == 1.25);
  CHECK(rule.as<TopKGatingOptions>()->capacity.drop == Drop::probability);
  CHECK_THROWS_AS(read({{"kind", "top1"}, {"capacity_factor", 0}}), UserError);
  const auto refusal = [&](const Json& given) {
    const GatingRule given_rule = read(given);
    try {
      given_rule.entry().check(given_rule.options(), "gating");
    } catch (const InvalidOption& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal({{"kind", "top1"}, {"capacity_factor", 1}, {"drop", "random"}}).empty());
  for (const char* kind : {"top1", "topk", "sigmoid", "noisy_topk"}) {
    CAPTURE(kind);
    Json given{{"kind", kind}, {"drop", "random"}};
    if (given["kind"] != "top1") given["k"] = 2;
    CHECK(refusal(given) == "gating.drop: given, but without capacity_factor nothing is dropped");
  }
  CHECK(refusal({{"kind", "sigmoid"}, {"capacity_factor", 1}}) ==
        "gating.capacity_factor: given, but without k every expert takes every row");
}

}  // namespace
}  // namespace moelab::capacity_test
