/// Where claims stand when paths are swept in step.

#include <doctest/doctest.h>

#include "tests/analysis/stats/judged_claim.h"

namespace moelab::claim_points_test {
namespace {

ClaimResult judged(const std::string& text, const ResultTable& table) {
  return judged_claim(text, table, [](const std::string&) { return true; });
}

}  // namespace

TEST_CASE("paths swept in step move together under `where`") {
  ResultTable table;
  table.arms = {"a"};
  table.sweep_paths = {"n", "steps"};
  for (const int n : {1, 2})
    for (int seed = 0; seed < 3; ++seed)
      table.rows.push_back(
          {"", "a", seed, {{"n", n}, {"steps", 10 * n}}, "done", {{"loss", 1.0 / n + 0.001 * seed}}, {}});
  const ClaimResult result =
      judged(R"({"arm": "a", "metric": "loss", "op": "decreases", "along": "n"})", table);
  CHECK(result.verdict == Verdict::reproduced);
  REQUIRE(result.points.size() == 1);
  CHECK(result.points[0].left_at == SweepPoint{{"n", 2}, {"steps", 20}});
}

TEST_CASE("paths swept in step move together beside a further swept path") {
  ResultTable table;
  table.arms = {"a"};
  table.sweep_paths = {"n", "steps", "k"};
  for (const int n : {1, 2, 4})
    for (const int k : {3, 6})
      for (int seed = 0; seed < 4; ++seed)
        table.rows.push_back({"",
                              "a",
                              seed,
                              {{"n", n}, {"steps", 10 * n}, {"k", k}},
                              "done",
                              {{"loss", k / static_cast<double>(n) + 0.001 * seed}},
                              {}});
  const ClaimResult trend =
      judged(R"({"arm": "a", "metric": "loss", "op": "decreases", "along": "n"})", table);
  CHECK(trend.verdict == Verdict::reproduced);
  REQUIRE(trend.points.size() == 2);
  CHECK(trend.points[1].left_at == SweepPoint{{"n", 4}, {"steps", 40}, {"k", 6}});
  CHECK(trend.points[1].right_at == SweepPoint{{"n", 1}, {"steps", 10}, {"k", 6}});
  const ClaimResult side = judged(R"({"left": {"arm": "a", "metric": "loss", "where": {"n": 4}}, "op": "<",
                                      "right": {"arm": "a", "metric": "loss", "where": {"n": 2}}})",
                                  table);
  CHECK(side.verdict == Verdict::reproduced);
  CHECK(side.points.size() == 2);
}

}  // namespace moelab::claim_points_test
