/// Claims of runs that were decided, and comparisons at equal loss and operations.

#include <doctest/doctest.h>

#include <cmath>

#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "app/scenario/claim_reader.h"
#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::sequential_claims_test {
namespace {

const std::function<bool(const std::string&)> kNonePositive = [](const std::string&) { return false; };

/// Arms a and b at one point, b of fewer seeds; b − a is `effect` and noise.
ResultTable table_of(int of_a, int of_b, double effect) {
  Engine engine = Seeds{5, 0}.stream(Purpose::problem);
  ResultTable table;
  table.arms = {"a", "b"};
  std::vector<double> values;
  for (int seed = 0; seed < of_a; ++seed) values.push_back(draw_normal(engine));
  for (int seed = 0; seed < of_a; ++seed)
    table.rows.push_back(
        {"", "a", seed, {}, "done", {{"share", values[static_cast<std::size_t>(seed)]}}, {}});
  for (int seed = 0; seed < of_b; ++seed) {
    const double value = values[static_cast<std::size_t>(seed)] + effect + draw_normal(engine);
    table.rows.push_back({"", "b", seed, {}, "done", {{"share", value}}, {}});
  }
  return table;
}

Json less_claim() {
  return Json::parse(R"([{"id": "c", "left": {"arm": "a", "metric": "share"}, "op": "<",
                          "right": {"arm": "b", "metric": "share"}}])");
}

ClaimResult judged(const ResultTable& table, const std::optional<int>& fixed_seeds = std::nullopt) {
  return evaluate_claims(read_claims(less_claim()), table, kNonePositive, fixed_seeds).front();
}

/// Curves over training: the loss halves with each record, a's faster in steps, b's cheaper in operations.
ResultTable curves() {
  ResultTable table;
  table.arms = {"a", "b"};
  for (const std::string arm : {"a", "b"}) {
    for (int seed = 0; seed < 4; ++seed) {
      std::vector<TraceEntry> trace;
      for (int record = 0; record <= 4; ++record) {
        const double loss = std::pow(arm == "a" ? 0.25 : 0.5, record);
        const double flops = (arm == "a" ? 4.0 : 1.0) * record;
        trace.push_back({record,
                         {{"train_loss", loss},
                          {"train_flops", flops},
                          {"share", (arm == "a" ? 10 : 20) + record + 0.01 * seed}}});
      }
      table.rows.push_back({"", arm, seed, {}, "done", trace.back().metrics, trace});
    }
  }
  return table;
}

ClaimPoint matched_point(const char* matched) {
  Json claims = less_claim();
  claims[0]["matched"] = matched;
  return evaluate_claims(read_claims(claims), curves(), kNonePositive).front().points.front();
}

}  // namespace

TEST_CASE("a decided run is judged by sequences, on the pairs that both sides have") {
  const ResultTable table = table_of(20, 12, 3);
  const ClaimResult result = judged(table, 5);
  const ClaimPoint& point = result.points.front();
  CHECK(point.pairs == 12);
  CHECK(point.is_sequential);
  CHECK(point.is_complete);
  CHECK(result.verdict == Verdict::reproduced);
  const ClaimPoint fixed = judged(table_of(20, 20, 3)).points.front();
  CHECK(!fixed.is_sequential);
  // A sequence's interval is the wider one.
  const ClaimPoint whole = judged(table_of(20, 20, 3), 5).points.front();
  CHECK(whole.difference->mean == fixed.difference->mean);
  CHECK(whole.difference->interval->low < fixed.difference->interval->low);
  CHECK(whole.difference->interval->high > fixed.difference->interval->high);
  CHECK(whole.left->interval->low < fixed.left->interval->low);
  CHECK(whole.left->mean == fixed.left->mean);
  REQUIRE(whole.median_interval);
  CHECK(whole.median_interval->low < whole.difference->mean);
  // By the fixed design the seeds that b lacks are missing.
  CHECK(judged(table).points.front().note.find("missing") != std::string::npos);
}

TEST_CASE("verdict, interval and p value of a sequence agree") {
  for (const double effect : {-3.0, 0.0, 3.0}) {
    const ClaimResult result = judged(table_of(30, 30, effect), 5);
    const ClaimPoint& point = result.points.front();
    REQUIRE(point.p_values);
    CHECK((point.p_values->supporting <= 0.05) == (point.difference->interval->high < 0));
    CHECK((point.p_values->opposing <= 0.05) == (point.difference->interval->low > 0));
    CHECK(result.verdict == (effect > 0   ? Verdict::reproduced
                             : effect < 0 ? Verdict::refuted
                                          : Verdict::inconclusive));
    if (effect == 0) CHECK(point.seeds_to_decide.value_or(31) > 30);
  }
}

TEST_CASE("fewer than six pairs decide nothing in a decided run") {
  const ClaimResult result = judged(table_of(5, 5, 50), 5);
  CHECK(result.verdict == Verdict::inconclusive);
  CHECK(judged(table_of(5, 5, 50)).verdict == Verdict::reproduced);
}

TEST_CASE("a decided run calls a point uninformative where both sequences lie above trivial alone") {
  const auto nmse_of = [](double of_a, double of_b) {
    ResultTable table = table_of(12, 12, 0);
    for (ResultRow& row : table.rows) {
      const double mean = row.arm == "a" ? of_a : of_b;
      row.metrics = {{"test_nmse_top1", mean + 0.1 * row.metrics.at("share")}};
    }
    Json claims = less_claim();
    for (const char* side : {"left", "right"}) claims[0][side]["metric"] = "test_nmse_top1";
    return evaluate_claims(read_claims(claims), table, kNonePositive, 6).front().points.front();
  };
  CHECK(nmse_of(1.6, 1.5).verdict == Verdict::uninformative);
  // The means may be above 1 by chance at this look: the point stays open.
  const ClaimPoint near = nmse_of(1.06, 1.06);
  REQUIRE(near.left->mean >= 1);
  REQUIRE(near.right->mean >= 1);
  CHECK(near.verdict == Verdict::inconclusive);
  CHECK(near.note.find("near trivial") != std::string::npos);
}

TEST_CASE("sides at equal training loss are read where each first reaches the greater of their least") {
  // b ends at 2⁻⁴, which a reaches at its second record: 12 against 24.
  const ClaimPoint point = matched_point("loss");
  CHECK(point.left->mean == doctest::Approx(12.015));
  CHECK(point.right->mean == doctest::Approx(24.015));
}

TEST_CASE("sides at equal operations are read at their last records within the fewer") {
  // b ends at 4 operations, which a has at its first record: 11 against 24.
  const ClaimPoint point = matched_point("flops");
  CHECK(point.left->mean == doctest::Approx(11.015));
  CHECK(point.right->mean == doctest::Approx(24.015));
  CHECK(matched_point("steps").left->mean == doctest::Approx(14.015));
}

TEST_CASE("what matching does not go with") {
  Json claims = less_claim();
  claims[0]["matched"] = "loss";
  claims[0]["left"]["step"] = "start";
  CHECK_THROWS_WITH_AS(read_claims(claims), doctest::Contains("claims[0].matched"), UserError);
  claims[0]["left"] = {{"value", 1.0}};
  CHECK_THROWS_WITH_AS(read_claims(claims), doctest::Contains("a side is a number"), UserError);
}

}  // namespace moelab::sequential_claims_test
