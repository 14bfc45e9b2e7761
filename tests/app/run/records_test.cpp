/// "records": "last": a group of metrics that is measured at the last record alone.

#include "app/run/cell.h"
#include "app/scenario/cells.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/scenario/refused.h"

namespace moelab::records_test {
namespace {

CellResult run_with(const char* metrics) {
  Json scenario = tiny();
  scenario["train"]["record_every"] = 2;
  scenario["metrics"] = Json::parse(metrics);
  scenario["evaluations"] =
      Json::parse(R"({"noisy": {"data.contamination": {"kind": "noise", "std": 0.5}}})");
  const CellResult result =
      run_cell(expand_scenario(scenario, "", {}).cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result;
}

TEST_CASE("a group of the last record has the same values there, and none before") {
  const CellResult every = run_with(R"(["task", "sparsity"])");
  const CellResult last = run_with(R"(["task", {"kind": "sparsity", "records": "last"}])");
  CHECK(last.metrics == every.metrics);
  REQUIRE(last.trace.size() == 3);
  for (const char* metric : {"cluster_entropy", "noisy.cluster_entropy"}) {
    CHECK(every.trace[1].metrics.contains(metric));
    CHECK(!last.trace[1].metrics.contains(metric));
    CHECK(last.trace[2].metrics.at(metric) == every.trace[2].metrics.at(metric));
  }
  CHECK(last.trace[1].metrics.at("test_loss_soft") == every.trace[1].metrics.at("test_loss_soft"));
  CHECK(run_with(R"([{"kind": "task", "records": "last"}, "sparsity"])").metrics == every.metrics);
}

TEST_CASE("groups that compare steps, and uses at other records, are refused") {
  const auto refused = [](const Json& document, const char* path, const char* message) {
    check_refused(document, "", {}, path, message);
  };
  for (const char* group : {"fluctuation", "saturation"}) {
    Json scenario = tiny();
    scenario["metrics"].push_back({{"kind", group}, {"records", "last"}});
    refused(scenario, "metrics[2].records", "compares steps");
  }
  Json counted = tiny();
  counted["metrics"].push_back({{"kind", "training"}, {"records", "last"}});
  refused(counted, "metrics[2].records", "is not measured at records");
  Json scenario = tiny();
  scenario["metrics"] = Json::parse(R"(["task", {"kind": "sparsity", "records": "last"}])");
  scenario["claims"] =
      Json::parse(R"([{"id": "c", "arm": "learned", "metric": "cluster_entropy", "op": "decreases",
                                        "along": "step"}])");
  refused(scenario, "claims[0].along", "known at the end alone");
  scenario["claims"] = Json::array();
  scenario["figures"] = Json::parse(R"([{"id": "f", "x": "step", "y": "cluster_entropy"}])");
  CHECK_THROWS_AS(expand_scenario(scenario, "", {}), UserError);
  scenario["metrics"][1]["records"] = "first";
  refused(scenario, "metrics[1].records", "last");
}

TEST_CASE("every record is the default and changes no id") {
  Json scenario = tiny();
  const std::string id = expand_scenario(scenario, "", {}).cells.front().id;
  scenario["metrics"] = Json::parse(R"(["task", {"kind": "sparsity", "records": "every"}])");
  CHECK(expand_scenario(scenario, "", {}).cells.front().id == id);
  scenario["metrics"][1]["records"] = "last";
  CHECK(expand_scenario(scenario, "", {}).cells.front().id != id);
}

}  // namespace
}  // namespace moelab::records_test
