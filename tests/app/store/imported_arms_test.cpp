#include "app/store/imported_arms.h"

#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "app/store/run_folder.h"
#include "sim/base/error.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::imported_arms_test {
namespace {

/// A run folder with a plan, but without recorded cells.
struct Planned {
  TemporaryFolder folder;

  explicit Planned(const Json& scenario) { keep_plan(folder.path(), expand_scenario(scenario, "", {})); }

  ImportedCounts import(const std::string& csv) const {
    return import_arm(RunAddress(folder.path()), "mine", csv, "mine.csv");
  }
  std::string refusal(const std::string& csv) const {
    try {
      import(csv);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  /// The states and losses of the imported rows, in the order of the plan.
  std::string imported() const {
    std::string text;
    for (const ResultRow& row : load_results(RunAddress(folder.path())).table.rows) {
      if (row.arm != "mine") continue;
      const auto loss = row.metrics.find("test_loss_soft");
      text += row.state + (loss == row.metrics.end() ? "" : " " + std::to_string(int(loss->second))) + ", ";
    }
    return text;
  }
};

}  // namespace

TEST_CASE("import: rows that are not done need no column of a metric") {
  const Planned plan(tiny());
  CHECK(plan.import("seed,data.train_samples,state\n0,20,diverged\n1,20,failed\n").rows == 2);
  CHECK(plan.imported() == "diverged, failed, missing, missing, ");
  CHECK(plan.refusal("seed,data.train_samples,state\n0,20,diverged\n1,20,done\n") ==
        "mine.csv:3: has the state 'done', but the table has no column of a metric");
  CHECK(plan.refusal("seed,data.train_samples\n0,20\n") == "mine.csv: has no column of a metric");
}

TEST_CASE("import: swept booleans are read as pandas and R write them") {
  Json scenario = tiny();
  scenario["arms"] = Json::parse(R"({"only": {}})");
  scenario["sweep"] = Json::parse(R"({"model.router.trainable": [true, false]})");
  const Planned plan(scenario);
  const std::string head = "seed,model.router.trainable,test_loss_soft\n";
  for (const char* const rows : {"0,True,1\n0,False,2\n", "0,TRUE,1\n0,FALSE,2\n", "0,true,1\n0,false,2\n"}) {
    plan.import(head + rows);
    CHECK(plan.imported() == "done 1, missing, done 2, missing, ");
  }
  CHECK(plan.refusal(head + "0,Maybe,1\n").find("the plan has no seed 0 at") != std::string::npos);
}

TEST_CASE("import: an empty field of a path that an arm does not sweep means every value") {
  Json scenario = tiny();
  scenario["sweep"] = Json::parse(R"({"model.router.init_scale": {"values": [1, 3], "arms": ["learned"]},
                                      "data.train_samples": [20, 40]})");
  const std::string head = "seed,model.router.init_scale,data.train_samples,test_loss_soft\n";
  for (const char* const arms : {R"(["learned"])", R"(["frozen"])"}) {  // the first arm, or another one
    scenario["sweep"]["model.router.init_scale"]["arms"] = Json::parse(arms);
    const Planned plan(scenario);
    CHECK(plan.import(head + "0,,20,1\n1,,20,2\n0,3,40,3\n").rows == 5);
    CHECK(plan.imported() == "done 1, done 2, missing, missing, done 1, done 2, done 3, missing, ");
    CHECK(plan.refusal(head + "0,,20,1\n0,3,20,1\n").find("stands there twice") != std::string::npos);
    CHECK(plan.refusal(head + "0,1,,1\n").find("the plan has no seed 0 at") != std::string::npos);
  }
}

TEST_CASE("import: the plan's metrics are known before the first cell is recorded") {
  Json scenario = tiny();
  scenario["metrics"].push_back(
      {{"kind", "convergence"}, {"metric", "train_loss"}, {"target", 1}, {"name", "fast"}});
  const Planned plan(scenario);
  CHECK(plan.import("seed,data.train_samples,steps_to_target.fast\n0,20,3\n").rows == 1);
  CHECK(plan.refusal("seed,data.train_samples,steps_to_target.fats\n0,20,3\n").find("unknown metric") !=
        std::string::npos);
}

}  // namespace moelab::imported_arms_test
