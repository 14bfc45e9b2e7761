#include "analysis/stats/claims.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "sim/base/error.h"
#include "tests/analysis/stats/judged_claim.h"

namespace moelab::claims_test {
namespace {

const std::function<bool(const std::string&)> kLossIsPositive = [](const std::string& name) {
  return name == "loss";
};

constexpr double kRounding = 1e-12;

/// Arms a, b at n = 100, 200; `value(arm, n, seed)` is the loss, and the share is the same number.
ResultTable make_table(int seeds, const std::function<double(const std::string&, int, int)>& value) {
  ResultTable table;
  table.arms = {"a", "b"};
  table.sweep_paths = {"data.n"};
  for (const std::string& arm : table.arms)
    for (const int n : {100, 200})
      for (int seed = 0; seed < seeds; ++seed) {
        const double loss = value(arm, n, seed);
        const MetricValues last = {{"loss", loss}, {"share", loss}}, first = {{"loss", 2 * loss}};
        table.rows.push_back({"", arm, seed, {{"data.n", n}}, "done", last, {{0, first}, {50, last}}});
      }
  return table;
}

/// b is twice a at every seed; seeds differ by factors, n = 200 halves.
double doubled(const std::string& arm, int n, int seed) {
  return (arm == "b" ? 2.0 : 1.0) * (1 + seed) * (100.0 / n) * (1 + 0.01 * ((seed * 7 + n / 100) % 3));
}

ResultTable doubled_table() {
  return make_table(4, doubled);
}

ClaimResult judged(const std::string& text, const ResultTable& table) {
  return judged_claim(text, table, kLossIsPositive);
}

}  // namespace

TEST_CASE("a paired comparison at each point, on the logarithm of a positive metric") {
  const std::string less = versus("loss", "<", R"(, "at": "each", "reported": 0.5)");
  const ClaimResult result = judged(less, doubled_table());
  CHECK(result.verdict == Verdict::reproduced);
  CHECK(result.reported == "0.5");
  REQUIRE(result.points.size() == 2);
  CHECK(result.points[0].logarithmic);
  CHECK(result.points[0].pairs == 4);
  // Pairing removes the spread over seeds altogether: the ratio is 1/2 at each of them.
  CHECK(std::abs(result.points[0].difference->mean + std::log(2.0)) < kRounding);
  CHECK(result.points[0].difference->interval->high - result.points[0].difference->interval->low < kRounding);
  // Unpaired, the two sides overlap.
  CHECK(result.points[0].left->interval->high > result.points[0].right->interval->low);

  const ClaimResult opposite = judged(versus("loss", ">", R"(, "at": "last")"), doubled_table());
  CHECK(opposite.verdict == Verdict::refuted);
  REQUIRE(opposite.points.size() == 1);
  CHECK(opposite.points[0].left_at == SweepPoint{{"data.n", 200}});
}

TEST_CASE("a reading that the paper excludes is judged at its points, but refutes nothing") {
  const ClaimResult result = judged(
      versus("loss", ">", R"(, "reading": "excluded", "origin": "paper", "quote": "q")"), doubled_table());
  CHECK(result.verdict == Verdict::excluded);
  CHECK(to_string(result.verdict) == "excluded");
  REQUIRE(result.points.size() == 2);
  CHECK(result.points[0].verdict == Verdict::refuted);
  CHECK_FALSE(result.p_value);
  CHECK_FALSE(result.seeds_to_decide);
  CHECK_THROWS_AS(
      judged(versus("loss", ">", R"(, "reading": "excluded", "origin": "paper")"), doubled_table()),
      UserError);
}

TEST_CASE("a metric not declared positive is compared by differences") {
  const ClaimResult result = judged(versus("share", "<"), doubled_table());
  CHECK_FALSE(result.points[0].logarithmic);
  double mean = 0;
  for (int seed = 0; seed < 4; ++seed) mean -= doubled("a", 100, seed) / 4;
  CHECK(std::abs(result.points[0].difference->mean - mean) < kRounding);
}

TEST_CASE("factors, values, `where` and `step`") {
  const auto verdict = [](const std::string& text) { return judged(text, doubled_table()).verdict; };
  CHECK(verdict(R"({"left": {"arm": "a", "metric": "loss"}, "op": "<",
                    "right": {"arm": "b", "metric": "loss", "factor": 0.6}})") == Verdict::reproduced);
  CHECK(verdict(R"({"left": {"arm": "a", "metric": "loss"}, "op": "<",
                    "right": {"arm": "b", "metric": "loss", "factor": 0.4}})") == Verdict::refuted);
  CHECK(verdict(R"({"left": {"arm": "a", "metric": "loss"}, "op": "<", "right": {"value": 50}})") ==
        Verdict::reproduced);
  CHECK(verdict(R"({"left": {"value": 1e-3}, "op": ">", "right": {"arm": "a", "metric": "loss"}})") ==
        Verdict::refuted);

  const ClaimPoint constant =
      judged(R"({"left": {"arm": "a", "metric": "loss", "factor": 2}, "op": "<", "right": {"value": 50}})",
             doubled_table())
          .points[0];
  CHECK(constant.left_factor == 2);
  CHECK(constant.left->interval.has_value());
  CHECK(constant.right->mean == 50);
  CHECK_FALSE(constant.right->interval.has_value());

  const ClaimResult where = judged(
      R"({"left": {"arm": "a", "metric": "loss", "where": {"data.n": 100}}, "op": ">",
          "right": {"arm": "a", "metric": "loss", "where": {"data.n": 200}, "factor": 1.9}})",
      doubled_table());
  CHECK(where.verdict == Verdict::reproduced);
  CHECK(where.points.size() == 1);  // both sides fix the only path: one comparison, not one for each point
  CHECK(where.points[0].left_at == SweepPoint{{"data.n", 100}});
  CHECK(where.points[0].right_at == SweepPoint{{"data.n", 200}});

  const ClaimResult steps = judged(
      R"({"left": {"arm": "a", "metric": "loss"}, "op": "~", "tolerance": 1e-6,
          "right": {"arm": "a", "metric": "loss", "step": 0, "factor": 0.5}, "at": [200]})",
      doubled_table());
  CHECK(steps.verdict == Verdict::reproduced);
  CHECK(steps.points.size() == 1);
  CHECK(
      verdict(R"({"left": {"arm": "a", "metric": "loss", "step": 7}, "op": "<", "right": {"value": 50}})") ==
      Verdict::inconclusive);
}

TEST_CASE("trends compare the last swept value with the first") {
  const auto result =
      judged(R"({"arm": "a", "metric": "loss", "op": "decreases", "along": "data.n"})", doubled_table());
  CHECK(result.verdict == Verdict::reproduced);
  REQUIRE(result.points.size() == 1);
  CHECK(result.points[0].left_at == SweepPoint{{"data.n", 200}});
  CHECK(judged(R"({"arm": "a", "metric": "loss", "op": "increases", "along": "data.n"})", doubled_table())
            .verdict == Verdict::refuted);
  CHECK(judged(R"({"arm": "b", "metric": "loss", "op": "decreases", "along": "step"})", doubled_table())
            .verdict == Verdict::reproduced);
}

TEST_CASE("a side relative to another arm is the ratio of the two, seed by seed") {
  // a is half of b at n = 100 and a quarter at 200, whatever the seed.
  const ResultTable table = make_table(4, [](const std::string& arm, int n, int seed) {
    return (1 + seed) * (arm == "b" ? 1.0 : n == 100 ? 0.5 : 0.25);
  });
  const ClaimResult trend = judged(
      R"({"arm": "a", "metric": "loss", "relative_to": "b", "op": "decreases", "along": "data.n"})", table);
  CHECK(trend.verdict == Verdict::reproduced);
  REQUIRE(trend.points.size() == 1);
  CHECK(std::abs(trend.points[0].difference->mean + std::log(2.0)) < kRounding);
  CHECK(trend.text == "a loss relative to b decreases along data.n");
  const ClaimResult share = judged(
      R"({"left": {"arm": "a", "metric": "share", "relative_to": "b"}, "op": "<", "right": {"value": 0.6}})",
      table);
  CHECK(share.verdict == Verdict::reproduced);
  CHECK(std::abs(share.points[1].difference->mean - (0.25 - 0.6)) < kRounding);

  ResultTable broken = table;
  broken.rows.back().state = "failed";  // of b
  CHECK(judged(R"({"arm": "a", "metric": "loss", "relative_to": "b", "op": "decreases", "along": "data.n"})",
               broken)
            .points[0]
            .note == "b seed 3 is failed");
  for (ResultRow& row : broken.rows) {
    if (row.arm == "b" && row.seed > 1) row.state = "failed";
  }
  CHECK(judged(R"({"arm": "a", "metric": "loss", "relative_to": "b", "op": "decreases", "along": "data.n"})",
               broken)
            .points[0]
            .note.starts_with("b seed 2 is failed; "));
  const ResultTable none = make_table(3, [](const std::string& arm, int, int) { return arm == "a"; });
  CHECK(judged(R"({"left": {"arm": "a", "metric": "share", "relative_to": "b"}, "op": "<",
                   "right": {"value": 1}})",
               none)
            .points[0]
            .note == "b seed 0 has share 0; 3 of 3 seeds are incomplete");
}

TEST_CASE("a difference within noise is inconclusive, whichever way it is claimed") {
  const double shifts[] = {-0.5, 0.45, -0.4, 0.3, -0.2};  // mean −0.07
  const ResultTable table = make_table(
      5, [&](const std::string& arm, int, int seed) { return arm == "a" ? std::exp(shifts[seed]) : 1.0; });
  const ClaimResult less = judged(versus("loss", "<"), table);
  CHECK(less.verdict == Verdict::inconclusive);
  const ClaimResult more = judged(versus("loss", ">"), table);
  CHECK(more.verdict == Verdict::inconclusive);
}

TEST_CASE("refuting needs Bonferroni's wider interval") {
  // Log differences −1, 0, 1 around `centre`: half-width t_2(0.975)/√3 = 2.484 at one point, and 3.582 (level
  // 0.975) at each of two.
  const auto table_around = [](double centre) {
    return make_table(3, [=](const std::string& arm, int n, int seed) {
      return arm == "a" ? std::exp((n == 100 ? centre : -9) + seed - 1) : 1.0;
    });
  };
  const std::string each = versus("loss", "<"), first = versus("loss", "<", R"(, "at": [100])");
  CHECK(judged(first, table_around(3)).verdict == Verdict::refuted);
  CHECK(judged(each, table_around(3)).verdict == Verdict::inconclusive);
  CHECK(judged(each, table_around(4)).verdict == Verdict::refuted);
}

TEST_CASE("~ needs the interval inside the tolerance") {
  const auto table_at = [](double ratio, double noise) {
    return make_table(4, [=](const std::string& arm, int, int seed) {
      return arm == "a" ? 5 * ratio * std::exp(noise * (seed % 2 ? 1 : -1)) : 5.0;
    });
  };
  for (const char* metric : {"loss", "share"}) {
    const std::string text = versus(metric, "~", R"(, "tolerance": 0.1)");
    CHECK(judged(text, table_at(1.05, 0.001)).verdict == Verdict::reproduced);
    CHECK(judged(text, table_at(1.05, 0.2)).verdict == Verdict::inconclusive);  // centred inside, too wide
    CHECK(judged(text, table_at(1.3, 0.001)).verdict == Verdict::refuted);
    CHECK(judged(text, table_at(0.8, 0.001)).verdict == Verdict::refuted);
  }
}

TEST_CASE("fewer than three pairs, and pairs that are not complete, are inconclusive") {
  const std::string less = versus("loss", "<", R"(, "at": "last")");
  CHECK(judged(less, make_table(2, doubled)).verdict == Verdict::inconclusive);
  for (const std::string state : {"diverged", "failed", "missing"}) {
    ResultTable table = doubled_table();
    table.rows.back().state = state;
    const ClaimResult result = judged(less, table);
    CHECK(result.verdict == Verdict::inconclusive);
    CHECK(result.points[0].pairs == 3);
    CHECK(result.points[0].note == "b seed 3 is " + state);
  }
  ResultTable lacking = doubled_table();
  lacking.rows.back().metrics.erase("loss");
  CHECK(judged(less, lacking).verdict == Verdict::inconclusive);
  // A broken cell elsewhere does not touch this point.
  ResultTable elsewhere = doubled_table();
  elsewhere.rows.front().state = "diverged";
  CHECK(judged(less, elsewhere).verdict == Verdict::reproduced);
}

TEST_CASE("a side that diverged in every seed loses, by the signs of all pairs") {
  const auto judged_with = [](int seeds, int diverged) {
    ResultTable table = make_table(seeds, doubled);
    for (ResultRow& row : table.rows)
      if (row.arm == "b" && row.seed < diverged) row.state = "diverged";
    return judged(versus("loss", "<", R"(, "at": "last", "diverged": "loses")"), table);
  };
  const ClaimResult decided = judged_with(8, 8);
  CHECK(decided.verdict == Verdict::reproduced);
  CHECK(decided.points[0].pairs == 0);
  CHECK(decided.points[0].note.find("sign test on 8 decidable of 8 pairs") != std::string::npos);
  const ClaimResult open = judged_with(4, 4);
  CHECK(open.verdict == Verdict::inconclusive);
  REQUIRE(open.points[0].seeds_to_decide);
  CHECK(*open.points[0].seeds_to_decide > 4);
  CHECK(*open.points[0].seeds_to_decide <= 8);
  // Two of four pairs are left, and the other two count as well.
  CHECK(judged_with(4, 2).points[0].note.find("of 4 pairs") != std::string::npos);
}

TEST_CASE("a pair that is lost against a claim takes its p value away") {
  ResultTable table = make_table(6, doubled);
  const std::string less = versus("loss", "<", R"(, "at": "last", "diverged": "loses")");
  CHECK(judged(less, table).points[0].p_values);
  for (ResultRow& row : table.rows)
    if (row.arm == "a" && row.seed == 0) row.state = "diverged";
  const ClaimResult lost = judged(less, table);
  CHECK(lost.verdict == Verdict::inconclusive);
  CHECK_FALSE(lost.points[0].p_values);
}

TEST_CASE("losses of two routers that the task does not teach decide nothing") {
  const auto table_of = [](bool is_left, bool is_right) {
    ResultTable table = doubled_table();
    for (ResultRow& row : table.rows) {
      row.metrics["test_loss_soft"] = row.metrics.at("loss");
      row.is_untaught = row.arm == "a" ? is_left : is_right;
    }
    return table;
  };
  const std::string loss = versus("test_loss_soft", "<"), load = versus("share", "<");
  const ClaimResult both = judged(loss, table_of(true, true));
  CHECK(both.verdict == Verdict::inconclusive);
  for (const ClaimPoint& point : both.points) {
    CHECK(point.verdict == Verdict::uninformative);
    CHECK(point.note == "no gradient of the task reaches the routers of both sides");
  }
  CHECK(judged(loss, table_of(true, false)).verdict == Verdict::reproduced);
  CHECK(judged(loss, table_of(false, true)).verdict == Verdict::reproduced);
  CHECK(judged(load, table_of(true, true)).verdict == judged(load, table_of(false, false)).verdict);
}

TEST_CASE("a positive metric that is 0 somewhere falls back to differences") {
  const ResultTable table = make_table(3, [](const std::string& arm, int n, int seed) {
    return arm == "a" ? (n == 100 && seed == 0 ? 0.0 : 0.1) : 1.0 + 0.01 * seed;
  });
  const ClaimResult result = judged(versus("loss", "<"), table);
  CHECK(result.verdict == Verdict::reproduced);
  for (const ClaimPoint& point : result.points) {
    CHECK_FALSE(point.logarithmic);
    CHECK(point.note == "raw differences: a value is not above 0");
  }
}

TEST_CASE("names that do not exist are refused with their path") {
  const auto path_of = [](const std::string& text) -> std::string {
    try {
      judged(text, doubled_table());
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return "no error";
  };
  CHECK(path_of(R"({"left": {"arm": "aa", "metric": "loss"}, "op": "<", "right": {"value": 1}})") ==
        "claims[0].left.arm");
  CHECK(
      path_of(R"({"left": {"arm": "a", "metric": "loss"}, "op": "<", "right": {"value": 1}, "at": [300]})") ==
      "claims[0].at[0]");
  CHECK(path_of(R"({"left": {"arm": "a", "metric": "loss", "where": {"data.m": 1}}, "op": "<",
                    "right": {"value": 1}})") == "claims[0].left.where.data.m");
  CHECK(path_of(R"({"left": {"arm": "a", "metric": "loss"}, "op": "=", "right": {"value": 1}})") ==
        "claims[0].op");
  CHECK(path_of(R"({"left": {"value": 1}, "op": "<", "right": {"value": 2}})") == "claims[0]");
  CHECK(path_of(R"({"arm": "a", "metric": "loss", "op": "decreases", "along": "data"})") ==
        "claims[0].along");
}

TEST_CASE("the distance of two arms' curves as a side") {
  // Losses 3, 6 and 9 of b − a, at the start twice as far apart: √((4 + 1)/2) times that.
  const ResultTable table = make_table(
      3, [](const std::string& arm, int, int seed) { return arm == "b" ? 10.0 + 3 * (1 + seed) : 10.0; });
  const std::string apart = R"({"left": {"arm": "b", "metric": "loss", "distance_from": "a"}, "op": ">",
                                "right": {"value": 4}, "at": "last"})";
  const ClaimResult result = judged(apart, table);
  CHECK(result.points.at(0).left->mean == doctest::Approx(6 * std::sqrt(2.5)).epsilon(kRounding));
  CHECK_FALSE(result.points.at(0).logarithmic);
  const std::string same = R"({"left": {"arm": "b", "metric": "loss", "distance_from": "b"}, "op": "<",
                               "right": {"arm": "b", "metric": "loss", "distance_from": "a"}, "at": "last"})";
  CHECK(judged(same, table).points.at(0).left->mean == 0);
  // The share is not recorded at the start.
  const std::string partial = R"({"left": {"arm": "b", "metric": "share", "distance_from": "a"}, "op": ">",
                                  "right": {"value": 4}, "at": "last"})";
  CHECK(judged(partial, table).verdict == Verdict::inconclusive);
  ResultTable diverged = table;
  diverged.rows.front().state = "diverged";
  CHECK(judged(apart, diverged).points.at(0).pairs == 3);  // at the other point
  const std::string first = R"({"left": {"arm": "b", "metric": "loss", "distance_from": "a"}, "op": ">",
                                "right": {"value": 4}, "at": [100]})";
  CHECK(judged(first, diverged).points.at(0).pairs == 2);
}

}  // namespace moelab::claims_test
