#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>

#include "analysis/stats/claims.h"
#include "analysis/stats/result_table.h"

namespace moelab::row_index_test {
namespace {

/// Arms a and b at `points` values of n with `seeds` seeds each; b is better by a tenth.
ResultTable table_of(int points, int seeds) {
  ResultTable table;
  table.arms = {"a", "b"};
  table.sweep_paths = {"n"};
  for (const std::string& arm : table.arms)
    for (int point = 0; point < points; ++point)
      for (int seed = 0; seed < seeds; ++seed) {
        const double loss = (arm == "a" ? 1.0 : 0.9) + 0.001 * (seed % 7);
        table.rows.push_back({"", arm, seed, {{"n", point}}, "done", {{"loss", loss}}, {}});
      }
  return table;
}

TEST_CASE("row index: rows by arm, point and seed") {
  ResultTable table = table_of(3, 4);
  std::swap(table.rows[4], table.rows[7]);                            // seeds out of order
  table.rows.push_back({"", "a", 2, {{"n", 0}}, "missing", {}, {}});  // an arm's rows in two places
  const RowIndex rows(table);
  CHECK(rows.points() == std::vector<SweepPoint>{{{"n", 0}}, {{"n", 1}}, {{"n", 2}}});
  CHECK(rows.has_point({{"n", 2.0}}));
  CHECK_FALSE(rows.has_point({{"n", "2"}}));
  CHECK_FALSE(rows.has_point({{"m", 2}}));
  CHECK(rows.rows("a", {{"n", 1}}).size() == 4);
  CHECK(rows.rows("a", {{"n", 1}}).front().second->seed == 0);
  CHECK(rows.rows("a", {{"n", 0}}).size() == 5);
  CHECK(rows.rows("a", {{"n", 0}})[2].second->state == "done");  // the first of equal seeds comes first
  CHECK(rows.rows("c", {{"n", 1}}).empty());
  CHECK(rows.seeds("b") == std::vector<int>{0, 1, 2, 3});
  CHECK(rows.seeds("c").empty());
}

TEST_CASE("row index: points and values by swept path") {
  ResultTable table;
  table.sweep_paths = {"n", "m"};
  for (const int n : {2, 1})
    for (const int m : {5, 6, 7}) table.rows.push_back({"", "a", 0, {{"n", n}, {"m", m}}, "done", {}, {}});
  const RowIndex rows(table);
  const auto found = [&](const SweepPoint& wanted) {
    std::vector<SweepPoint> points;
    for (const SweepPoint* point : rows.points_at(wanted)) points.push_back(*point);
    return points;
  };
  CHECK(found({}) == rows.points());
  CHECK(found({{"m", 6.0}}) == std::vector<SweepPoint>{{{"n", 2}, {"m", 6}}, {{"n", 1}, {"m", 6}}});
  CHECK(found({{"n", 1}, {"m", 7}}) == std::vector<SweepPoint>{{{"n", 1}, {"m", 7}}});
  CHECK(found({{"n", 1}, {"n", 2}}).empty());
  CHECK(found({{"n", 1}, {"m", 8}}).empty());
  CHECK(found({{"k", 1}}).empty());
  CHECK(rows.values("n") == std::vector<SweepValue>{2, 1});
  CHECK(rows.values("m") == std::vector<SweepValue>{5, 6, 7});
  CHECK(rows.values("k").empty());
}

TEST_CASE("row index: equal texts of different points are different points") {
  CHECK(point_key({{"a", 1}, {"b", 2}}) != point_key({{"a", 1}}));
  CHECK(point_key({{"a", "x"}}) != point_key({{"a", "x "}}));
  CHECK(point_key({{"a", 1}}) == point_key({{"a", 1.0}}));
}

double seconds_of_claims(int points, int seeds) {
  const ResultTable table = table_of(points, seeds);
  ClaimSide left, right;
  left.metric = right.metric = "loss";
  left.arm = "b";
  right.arm = "a";
  ClaimSide first = right;
  first.where = {{"n", 0}};
  Trend trend;
  trend.side = left;
  trend.along = "n";
  Trend monotone = trend;
  monotone.shape = TrendShape::monotone;
  const ComparisonRule below = {"<", "", [](double) { return kBelow; }};
  Comparison listed = {left, right, below, 0, {ClaimPlaces::Which::listed, {}}};
  for (int point = 0; point < points; ++point) listed.at.listed.emplace_back(SweepPoint{{"n", point}});
  std::vector<Claim> claims;
  for (const auto& statement : std::initializer_list<decltype(Claim::statement)>{
           Comparison{left, right, below, 0, {}}, Comparison{left, first, below, 0, {}}, trend, monotone,
           listed}) {
    Claim& claim = claims.emplace_back();
    claim.id = "claim";
    claim.statement = statement;
  }
  const std::clock_t start = std::clock();  // other work on the machine does not count
  const std::vector<ClaimResult> results =
      evaluate_claims(claims, table, [](const std::string&) { return true; });
  const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(results[0].verdict == Verdict::reproduced);
  CHECK(results[0].points.size() == static_cast<std::size_t>(points));
  CHECK(results[1].verdict == Verdict::reproduced);
  CHECK(results[3].points.size() == static_cast<std::size_t>(points));  // the steps and the ends
  CHECK(results[4].points.size() == static_cast<std::size_t>(points));
  return taken;
}

TEST_CASE("row index: the time of claims is linear in cells, be they seeds or points") {
  constexpr int kTimes = 8;  // a quadratic one would be 64 times as long
  for (const auto& [points, seeds] : {std::pair(1000, 4), std::pair(10, 400)}) {
    const double less = std::max(seconds_of_claims(points, seeds), 0.002);
    const double more = points > seeds ? seconds_of_claims(points * kTimes, seeds)
                                       : seconds_of_claims(points, seeds * kTimes);
    CHECK(more < 4 * kTimes * less);
  }
}

}  // namespace
}  // namespace moelab::row_index_test
