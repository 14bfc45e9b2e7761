#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "analysis/stats/claims.h"
#include "tests/analysis/stats/judged_claim.h"

namespace moelab::verdicts_test {
namespace {

/// Positive: the losses and the steps.
bool is_positive(const std::string& name) {
  return name != "share";
}

/// Arms a, b at n = 100, 200, 400; `fill` sets the metrics of an arm at a size and seed.
ResultTable make_table(int seeds,
                       const std::function<void(const std::string&, int, int, MetricValues&)>& fill) {
  ResultTable table{{"a", "b"}, {"n"}, {}, {}};
  for (const std::string& arm : table.arms) {
    for (const int n : {100, 200, 400}) {
      for (int seed = 0; seed < seeds; ++seed) {
        ResultRow row{"", arm, seed, {{"n", n}}, "done", {}, {}};
        fill(arm, n, seed, row.metrics);
        row.trace = {{0, {}}, {500, row.metrics}};
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

ResultTable table_of(int seeds, const std::string& metric,
                     const std::function<double(const std::string&, int, int)>& value) {
  return make_table(seeds, [&](const std::string& arm, int n, int seed, MetricValues& metrics) {
    metrics[metric] = value(arm, n, seed);
  });
}

/// Steps to a target. Steps above 500 are censored.
ResultTable steps_table(int seeds, const std::function<double(const std::string&, int, int)>& steps) {
  return make_table(seeds, [&](const std::string& arm, int n, int seed, MetricValues& metrics) {
    const double value = steps(arm, n, seed);
    if (value <= 500) metrics["steps_to_target"] = value;
    metrics["steps_to_target_censored"] = value <= 500 ? 0 : 1;
  });
}

ClaimResult judged(const ResultTable& table, const std::string& text) {
  return judged_claim(text, table, is_positive);
}

std::string trend(const std::string& op, const std::string& shape) {
  return R"({"arm": "a", "metric": "loss", "along": "n", "op": ")" + op + R"(", "shape": ")" + shape +
         R"("})";
}

/// Alternating around 0, so that means over an even number of seeds are exact.
double wobble(int seed) {
  return seed % 2 == 0 ? 0.01 : -0.01;
}

}  // namespace

TEST_CASE("censored values: the sign test on pairs of which the order is known") {
  // b never reaches its target, a always: all pairs are decidable.
  const ResultTable never =
      steps_table(6, [](const std::string& arm, int, int seed) { return arm == "a" ? 100 + seed : 1000; });
  const ClaimResult sooner = judged(never, versus("steps_to_target", "<", R"(, "at": "last")"));
  CHECK(sooner.verdict == Verdict::reproduced);
  REQUIRE(sooner.points.front().signs);
  CHECK(sooner.points.front().signs->below == 6);
  CHECK(sooner.p_value.value() == doctest::Approx(0.03125));
  CHECK_FALSE(sooner.points.front().left.has_value());
  CHECK(sooner.points.front().left_median->value == 102.5);
  CHECK(sooner.points.front().right_median->is_open);
  CHECK(sooner.points.front().right_median->censored == 6);
  CHECK(judged(never, versus("steps_to_target", ">", R"(, "at": "last")")).verdict == Verdict::refuted);
  // Against one of three points the level is 0.05/3, for which six pairs are too few.
  CHECK(judged(never, versus("steps_to_target", ">")).verdict == Verdict::inconclusive);
  CHECK(judged(never, versus("steps_to_target", "~", R"(, "tolerance": 0.5)")).verdict ==
        Verdict::inconclusive);
}

TEST_CASE(
    "censored values: two censored ones have no known order, and fewer than six decidable pairs decide "
    "nothing") {
  // Seeds 0 to 4 are decidable, in the others both are censored.
  const ResultTable ties = steps_table(
      10, [](const std::string& arm, int, int seed) { return arm == "a" && seed < 5 ? 100.0 : 1000.0; });
  const ClaimResult claim = judged(ties, versus("steps_to_target", "<", R"(, "at": "last")"));
  const ClaimPoint& point = claim.points.front();
  CHECK(point.verdict == Verdict::inconclusive);
  CHECK(point.signs->undecided == 5);
  CHECK(point.signs->below == 5);
  CHECK(point.note.find("a verdict needs 6 decidable pairs") != std::string::npos);
  // Of twelve seeds half are decidable.
  CHECK(point.seeds_to_decide == 12);
  CHECK(claim.seeds_to_decide == 12);
}

TEST_CASE("censored values: a factor multiplies them, and may leave a pair undecided") {
  const ResultTable table =
      steps_table(8, [](const std::string& arm, int, int) { return arm == "a" ? 300.0 : 1000.0; });
  const auto with_factor = [&](double factor) {
    return judged(table, R"({"left": {"arm": "a", "metric": "steps_to_target", "factor": )" +
                             std::to_string(factor) +
                             R"(}, "op": "<", "right": {"arm": "b", "metric": "steps_to_target"},
                                "at": "last"})");
  };
  CHECK(with_factor(1.5).verdict == Verdict::reproduced);  // 450 steps, more than 500
  const ClaimResult undecided = with_factor(2);            // 600 steps, more than 500
  CHECK(undecided.verdict == Verdict::inconclusive);
  CHECK(undecided.points.front().signs->undecided == 8);
  CHECK_FALSE(undecided.seeds_to_decide.has_value());
}

TEST_CASE("censored values: a trend's ends are compared in the same way, uncensored points by Student's t") {
  const ResultTable table = steps_table(
      6, [](const std::string&, int n, int seed) { return n == 100 ? 1000.0 : 50000.0 / n + seed; });
  const std::string falls = R"({"arm": "a", "metric": "steps_to_target", "along": "n", "op": "decreases"})";
  CHECK(judged(table, falls).verdict == Verdict::reproduced);
  CHECK(judged(table, falls).points.front().signs.has_value());
  const ClaimResult late =
      judged(table, R"({"left": {"arm": "a", "metric": "steps_to_target", "where": {"n": 400}}, "op": "<",
                 "right": {"arm": "a", "metric": "steps_to_target", "where": {"n": 200}}})");
  CHECK(late.verdict == Verdict::reproduced);
  CHECK_FALSE(late.points.front().signs.has_value());
}

TEST_CASE("a monotone trend is refuted by a step the other way, the ends alone are not") {
  // 1, 0.2, 0.5: the ends fall, the last step rises.
  const auto loss = [](const std::string&, int n, int seed) {
    return (n == 100 ? 1.0 : n == 200 ? 0.2 : 0.5) * std::exp(wobble(seed * n / 100));
  };
  const ResultTable table = table_of(5, "loss", loss);
  const ClaimResult ends = judged(table, trend("decreases", "ends"));
  CHECK(ends.verdict == Verdict::reproduced);
  CHECK(ends.shape == TrendShape::ends);
  CHECK(ends.points.size() == 1);
  const ClaimResult monotone = judged(table, trend("decreases", "monotone"));
  CHECK(monotone.verdict == Verdict::refuted);
  CHECK(monotone.shape == TrendShape::monotone);
  REQUIRE(monotone.points.size() == 3);  // two steps, and the ends
  CHECK(monotone.points[1].is_step);
  CHECK(monotone.points[1].verdict == Verdict::refuted);
  CHECK(monotone.points[1].left_at == SweepPoint{{"n", 400}});
  CHECK_FALSE(monotone.points[2].is_step);
  CHECK(monotone.p_value.value() < 0.05);
}

TEST_CASE("a monotone trend may stand still between its ends") {
  const auto loss = [](const std::string&, int n, int seed) {
    return (n == 100 ? 1.0 : 0.2) * std::exp(wobble(seed + n / 200));
  };
  const ClaimResult flat = judged(table_of(6, "loss", loss), trend("decreases", "monotone"));
  CHECK(flat.points[1].verdict == Verdict::inconclusive);
  CHECK(flat.verdict == Verdict::reproduced);
  CHECK(judged(table_of(6, "loss", loss), trend("increases", "monotone")).verdict == Verdict::refuted);
  // But not where a step cannot be judged.
  ResultTable broken = table_of(6, "loss", loss);
  for (ResultRow& row : broken.rows)
    if (row.seed == 0 && row.point.front().second == SweepValue(200)) row.state = "failed";
  CHECK(judged(broken, trend("decreases", "ends")).verdict == Verdict::reproduced);
  CHECK(judged(broken, trend("decreases", "monotone")).verdict == Verdict::inconclusive);
}

TEST_CASE("a monotone trend along the steps of training looks at every recorded one") {
  ResultTable table{{"a"}, {}, {}, {}};
  for (int seed = 0; seed < 4; ++seed) {
    ResultRow row{"", "a", seed, {}, "done", {}, {}};
    for (const double loss : {1.0, 0.1, 0.5})
      row.trace.push_back(
          {static_cast<std::int64_t>(10 * row.trace.size()), {{"loss", loss + 0.001 * seed}}});
    row.metrics = row.trace.back().metrics;
    table.rows.push_back(std::move(row));
  }
  const std::string text = R"({"arm": "a", "metric": "loss", "along": "step", "op": "decreases")";
  CHECK(judged(table, text + "}").verdict == Verdict::reproduced);
  const ClaimResult monotone = judged(table, text + R"(, "shape": "monotone"})");
  CHECK(monotone.verdict == Verdict::refuted);
  REQUIRE(monotone.points.size() == 3);
  CHECK(monotone.points[1].left_step->step == 20);
  CHECK(monotone.points[1].right_step->step == 10);
}

TEST_CASE("an interval within the smallest effect is equivalent, relative for logarithms") {
  // Ratio 1.01 at one seed, 0.99 at the next: the interval is about ±0.01 at six seeds.
  const auto value = [](const std::string& arm, int, int seed) {
    return arm == "a" ? 5 * std::exp(wobble(seed)) : 5.0;
  };
  const ResultTable losses = table_of(6, "loss", value), shares = table_of(6, "share", value);
  const auto verdict = [](const ResultTable& table, const std::string& metric, const std::string& effect) {
    return judged(table, versus(metric, "<", R"(, "smallest_effect": )" + effect)).verdict;
  };
  CHECK(judged(losses, versus("loss", "<")).verdict == Verdict::inconclusive);
  CHECK(verdict(losses, "loss", "0.05") == Verdict::equivalent);
  CHECK(verdict(losses, "loss", "0.005") == Verdict::inconclusive);
  // In the units of the share, five times as far apart.
  CHECK(verdict(shares, "share", "0.1") == Verdict::equivalent);
  CHECK(verdict(shares, "share", "0.05") == Verdict::inconclusive);
  CHECK(judged(losses, versus("loss", "<", R"(, "smallest_effect": 0.05)")).p_value.value() < 0.05);
  // The sign is as claimed, but 1 % is too small to matter.
  const ResultTable better = table_of(6, "loss", [](const std::string& arm, int, int seed) {
    return arm == "a" ? std::exp(-0.01 + wobble(seed) / 100) : 1.0;
  });
  CHECK(verdict(better, "loss", "0.05") == Verdict::equivalent);
  CHECK(verdict(better, "loss", "0.005") == Verdict::reproduced);
}

TEST_CASE("a margin as large as both sides together is said, since it was meant as a share") {
  const ResultTable table = table_of(6, "share", [](const std::string& arm, int, int seed) {
    return (arm == "a" ? 0.011 : 0.01) + wobble(seed) / 1000;
  });
  const auto judged_with = [&](const std::string& effect) {
    return judged(table, versus("share", ">", R"(, "smallest_effect": )" + effect));
  };
  const ClaimResult wide = judged_with("0.05"), right = judged_with("0.0005");
  CHECK(wide.verdict == Verdict::equivalent);
  CHECK(wide.points.front().note.find("it is a difference here, not a share") != std::string::npos);
  CHECK(right.verdict == Verdict::reproduced);
  CHECK(right.points.front().note.empty());
}

TEST_CASE("beside inconclusive: the seeds that would decide at the present spread") {
  // δ = −0.1 ± 0.5 alternating: as many as significance_test finds for its spread.
  const ResultTable table = table_of(10, "share", [](const std::string& arm, int, int seed) {
    return arm == "a" ? -0.1 + 50 * wobble(seed) : 0.0;
  });
  const ClaimResult claim = judged(table, versus("share", "<", R"(, "at": "last")"));
  REQUIRE(claim.verdict == Verdict::inconclusive);
  REQUIRE(claim.seeds_to_decide);
  const int seeds = *claim.seeds_to_decide;
  // s² = 0.25 · 10/9.
  const double variance = 0.25 * 10 / 9;
  CHECK(student_interval(-0.1, variance, seeds).high < 0);
  CHECK(student_interval(-0.1, variance, seeds - 1).high >= 0);
  // A difference of nothing is decided only by a smallest effect.
  const ResultTable none = table_of(
      10, "share", [](const std::string& arm, int, int seed) { return arm == "a" ? wobble(seed) : 0.0; });
  CHECK_FALSE(judged(none, versus("share", "<")).seeds_to_decide.has_value());
  CHECK(judged(none, versus("share", "<", R"(, "smallest_effect": 0.005)")).seeds_to_decide.value() > 10);
  ResultTable broken = table;
  broken.rows.front().state = "failed";
  CHECK_FALSE(judged(broken, versus("share", "<")).seeds_to_decide.has_value());
}

TEST_CASE("a point where both sides are no better than trivial decides nothing") {
  // At n = 100 the claim would be refuted, elsewhere it holds.
  const auto nmse = [](const std::string& arm, int n, int seed) {
    const double value = n == 100 ? (arm == "a" ? 1.45 : 1.37) : (arm == "a" ? 0.2 : 0.4);
    return value * std::exp(wobble(seed));
  };
  const ClaimResult claim = judged(table_of(5, "test_nmse_top1", nmse), versus("test_nmse_top1", "<"));
  CHECK(claim.points[0].verdict == Verdict::uninformative);
  CHECK(claim.verdict == Verdict::reproduced);
  // One side is better than trivial; a loss is not relative to anything; a number is no model.
  const auto mixed = [&](const std::string& arm, int n, int seed) {
    return nmse(arm, n, seed) - (arm == "b" && n == 100 ? 0.5 : 0);
  };
  CHECK(judged(table_of(5, "test_nmse_top1", mixed), versus("test_nmse_top1", "<")).verdict ==
        Verdict::refuted);
  CHECK(judged(table_of(5, "loss", nmse), versus("loss", "<")).verdict == Verdict::refuted);
  CHECK(judged(table_of(5, "test_nmse_top1", nmse),
               R"({"left": {"arm": "a", "metric": "test_nmse_top1"}, "op": "<", "right": {"value": 1.2}})")
            .verdict == Verdict::refuted);
  const ResultTable trivial = table_of(5, "test_nmse_top1", [](const std::string& arm, int, int seed) {
    return (arm == "a" ? 1.45 : 1.37) * std::exp(wobble(seed));
  });
  CHECK(judged(trivial, versus("test_nmse_top1", "<")).verdict == Verdict::inconclusive);
}

TEST_CASE("steps to a target are no loss, whatever their entry's name") {
  const std::string metric = "steps_to_target.test_nmse_top1";
  const ResultTable steps = table_of(5, metric, [](const std::string& arm, int, int seed) {
    return (arm == "a" ? 20 : 40) * std::exp(wobble(seed));
  });
  CHECK(judged(steps, versus(metric, "<")).verdict == Verdict::reproduced);
}

TEST_CASE("sides may be expressions of metrics and swept values") {
  const ResultTable table =
      table_of(5, "loss", [](const std::string&, int n, int seed) { return n * (1 + 0.1 * seed); });
  // loss / n is 1 + 0.1 seed at every n.
  const ClaimResult ratio =
      judged(table, R"({"left": {"arm": "a", "metric": "loss / n"}, "op": "<", "right": {"value": 1.6}})");
  CHECK(ratio.verdict == Verdict::reproduced);
  CHECK(ratio.points[2].left->mean ==
        doctest::Approx(std::pow(1.0 * 1.1 * 1.2 * 1.3 * 1.4, 0.2)));  // positive: the geometric mean
  CHECK(ratio.points[2].logarithmic);
  CHECK(ratio.text == "a (loss / n) < 1.6");
  const ClaimResult against =
      judged(table, R"({"left": {"arm": "a", "metric": "loss"}, "op": ">", "right": {"value": "n / 2"}})");
  CHECK(against.verdict == Verdict::reproduced);
  CHECK(against.points[1].right->mean == 100);
  CHECK_FALSE(
      judged(table, R"({"left": {"arm": "a", "metric": "loss - n"}, "op": "<", "right": {"value": 1e3}})")
          .points[0]
          .logarithmic);
}

TEST_CASE("whose claim it is, and what was judged beside its words") {
  const ResultTable table =
      table_of(3, "loss", [](const std::string& arm, int, int) { return arm == "a" ? 1.0 : 2.0; });
  const ClaimResult claim = judged(table, versus("loss", "<", R"(, "origin": "paper", "text": "“lower”")"));
  CHECK(claim.origin == Origin::paper);
  CHECK(claim.text == "“lower”");
  CHECK(claim.statement == "a loss < b loss");
  CHECK(judged(table, versus("loss", "<")).origin == Origin::ours);
}

}  // namespace moelab::verdicts_test
