/// Runs of a sweep that names its arms: cells once, results at every value.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::partial_sweep_test {
namespace {

Json partial() {
  Json scenario = tiny_with_claims(R"([
    {"id": "each", "left": {"arm": "learned", "metric": "test_nmse_top1"}, "op": "<",
     "right": {"arm": "frozen", "metric": "test_nmse_top1"}},
    {"id": "unswept", "left": {"arm": "frozen", "metric": "test_nmse_top1"}, "op": "<", "right": {"value": 2}}])");
  scenario["sweep"] = Json::parse(R"({"model.router.init_scale": {"values": [1, 3], "arms": ["learned"]},
                                      "data.train_samples": [20, 40]})");
  scenario["tune"] = Json::parse(R"({"train.lr": {"low": 0.01, "high": 0.1}})");
  return scenario;
}

Json json_of(const std::vector<std::string>& words) {
  const Answer answer = ask(words);
  CHECK(answer.status == 0);
  return Json::parse(answer.out);
}

TEST_CASE("the cells of an arm that does not sweep a path exist once and stand at every value in claims") {
  const Bench bench(partial());
  const Json ran = json_of({"run", bench.file, "--out", bench.run, "--json"});
  CHECK(ran.at("cells") == 18);
  CHECK(ran.at("summary").at("entries").size() == 8);
  const Json status = json_of({"status", bench.run, "--json"});
  CHECK(status.at("arms").at("frozen").at("done") == 6);
  CHECK(status.at("arms").at("learned").at("done") == 12);
  CHECK(status.at("plans").at(0).at("recorded") == 18);

  const Json cells = json_of({"export", bench.run, "--json"});
  CHECK(cells.at("columns")[3] == "model.router.init_scale");
  REQUIRE(cells.at("rows").size() == 18);
  for (const Json& row : cells.at("rows")) CHECK(row[3].is_null() == (row[1] == "frozen"));

  const std::string plan = ask({"plan", bench.file, "--out", bench.run}).out;
  CHECK(plan.find("sweep points  2 of frozen, 4 of learned\n") != std::string::npos);

  const Json claims = json_of({"claims", bench.run, "--json"});
  CHECK(claims[0].at("points").size() == 4);
  CHECK(claims[1].at("points").size() == 2);  // the same cells are one point
}

TEST_CASE("an arm that does not sweep a path is sampled at any value of it") {
  const Bench bench(partial());
  const Answer answer = ask({"sample", bench.file, "--arm", "frozen", "--at", "model.router.init_scale=3",
                             "--out", (bench.folder.path() / "sample").string(), "--json"});
  CHECK(answer.status == 0);
  CHECK(Json::parse(answer.out).at("arm") == "frozen");
}

TEST_CASE("the candidates of an arm sweep what the arm sweeps") {
  const Bench bench(partial());
  const std::string out = (bench.folder.path() / "tuning").string();
  const Json both = json_of({"tune", bench.file, "--out", out, "--budget", "8", "--json"});
  CHECK(both.at("arms").at("learned").at("cells").get<int>() ==
        2 * both.at("arms").at("frozen").at("cells").get<int>());
  const Json frozen =
      json_of({"tune", bench.file, "--out", out, "--budget", "8", "--arms", "frozen", "--json"});
  CHECK(frozen.at("arms").at("frozen").at("cells") == both.at("arms").at("frozen").at("cells"));
}

TEST_CASE("rows of arms that lack coordinates are repeated in the order of the grid") {
  ResultTable table;
  table.arms = {"a", "b", "c"};
  table.sweep_paths = {"x", "y", "z"};
  for (const int x : {1, 2})
    for (const int seed : {0, 1}) table.rows.push_back({"a", "a", seed, {{"x", x}}, "done", {}, {}});
  for (const int x : {1, 2})
    for (const int y : {5, 6}) table.rows.push_back({"b", "b", 0, {{"x", x}, {"y", y}}, "done", {}, {}});
  for (const int x : {1, 2})
    for (const int z : {8, 9}) table.rows.push_back({"c", "c", 0, {{"x", x}, {"z", z}}, "done", {}, {}});
  repeat_unswept(table);
  const auto of_arm = [&](const std::string& arm) {
    std::string text;
    for (const ResultRow& row : table.rows) {
      if (row.arm != arm || row.seed != 0) continue;
      for (const auto& coordinate : row.point) text += coordinate.second.text();
      text += row.is_copy ? "* " : " ";
    }
    return text;
  };
  CHECK(of_arm("a") == "158 159* 168* 169* 258 259* 268* 269* ");
  CHECK(of_arm("b") == "158 159* 168 169* 258 259* 268 269* ");
  CHECK(of_arm("c") == "158 159 168* 169* 258 259 268* 269* ");
  CHECK(table.cell_count() == 12);
  CHECK(!table.sweeps("a", "y"));
  CHECK(table.sweeps("b", "y"));
  CHECK(!table.sweeps("b", "z"));
}

}  // namespace
}  // namespace moelab::partial_sweep_test
