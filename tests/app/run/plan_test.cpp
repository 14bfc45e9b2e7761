#include "app/store/plan.h"

#include <doctest/doctest.h>

#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::plan_test {
namespace {

namespace fs = std::filesystem;

/// A plan.json of any text.
struct PlanFile {
  TemporaryFolder folder;
  fs::path file = folder.path() / "plan.json";

  std::string refusal(const std::string& text) const {
    std::ofstream(file, std::ios::binary) << text;
    try {
      read_plan(file);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  bool is_damaged(const std::string& text) const {
    std::ofstream(file, std::ios::binary) << text;
    try {
      read_plan(file);
    } catch (const DamagedPlan&) {
      return true;
    } catch (const UserError&) {
      return false;
    }
    return false;
  }
};

std::string text_of(const Scenario& scenario) {
  return plan_text(scenario, plan_id(scenario));
}

Json document_of(const Scenario& scenario) {
  return parse_sealed(text_of(scenario));
}

Scenario with_seeds(int seeds) {
  Scenario scenario = small_scenario();
  scenario.document["seeds"] = {{"root", 1}, {"count", seeds}};
  std::erase_if(scenario.cells, [&](const Cell& cell) { return cell.seed >= seeds; });
  return scenario;
}

}  // namespace

TEST_CASE("plan: comes back as it was written") {
  const PlanFile plan;
  const Scenario scenario = small_scenario();
  REQUIRE(plan.refusal(text_of(scenario)).empty());
  const Plan read = read_plan(plan.file);
  CHECK(read.id == plan_id(scenario));
  CHECK(read.id.size() == 12);
  CHECK(to_json(read) == to_json(plan_of(scenario, read.id)));
  REQUIRE(read.cells.size() == scenario.cells.size());
  for (std::size_t i = 0; i < scenario.cells.size(); ++i) {
    CHECK(read.cells[i].cell == scenario.cells[i].id);
    CHECK(read.cells[i].arm == scenario.cells[i].arm);
    CHECK(read.cells[i].seed == scenario.cells[i].seed);
    CHECK(read.cells[i].point == scenario.cells[i].point);
    CHECK(read.cells[i].state == "missing");
  }
  CHECK(text_of(scenario).starts_with("{\n \"checksum\": \""));
}

TEST_CASE("plan: tells cells whose router the task does not teach") {
  const Json document = Json::parse(R"({
    "name": "taught",
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 30},
    "model": {"experts": 3, "router": {"kind": "linear"}, "expert": {"kind": "constant"},
              "gating": {"train": {"kind": "topk", "k": 1, "renormalize": true}}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 10, "steps": 4},
    "metrics": ["task"],
    "arms": {"untaught": {}, "taught": {"model.gating.train.renormalize": false},
             "frozen": {"model.router.trainable": false}}})");
  const PlanFile plan;
  REQUIRE(plan.refusal(text_of(expand_scenario(document, "", {}))).empty());
  for (const ResultRow& cell : read_plan(plan.file).cells) {
    CAPTURE(cell.arm);
    CHECK(cell.is_untaught == (cell.arm == "untaught"));
  }
}

TEST_CASE("plan: every byte counts") {
  const PlanFile plan;
  const std::string text = text_of(small_scenario());
  for (std::size_t place = 0; place < text.size(); ++place) {
    for (const int bit : {0, 5, 7}) {
      std::string damaged = text;
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << bit));
      CHECK_MESSAGE(plan.is_damaged(damaged), "byte ", place, ", bit ", bit);
    }
    CHECK(plan.is_damaged(text.substr(0, place)));
  }
  CHECK(plan.is_damaged(text + "\n"));
}

TEST_CASE("plan: a sealed text that is no plan is damaged") {
  const PlanFile plan;
  for (const Json& cells : {Json(3), Json::array({3}), Json::array({{{"id", "a"}}}), Json()}) {
    Json document = document_of(small_scenario());
    document["cells"] = cells;
    CHECK(plan.is_damaged(sealed_text(document)));
  }
  for (const char* field : {"id", "name", "scenario", "claims", "figures", "arms", "sweep", "cells"}) {
    Json document = document_of(small_scenario());
    document.erase(field);
    CHECK(plan.is_damaged(sealed_text(document)));
  }
  Json document = document_of(small_scenario());
  document["scenario"]["name"] = "changed by hand";
  CHECK(plan.refusal(sealed_text(document)).find("its id does not match its scenario and its cells") !=
        std::string::npos);
  document = document_of(small_scenario());
  document["cells"][0]["id"] = "changed by hand";
  CHECK(plan.is_damaged(sealed_text(document)));
}

TEST_CASE("plan: of another version it is refused, and one that says none is of the first") {
  const PlanFile plan;
  Json document = document_of(small_scenario());
  CHECK(document.at("version") == kPlanVersion);
  for (const Json& version : {Json(kPlanVersion + 1), Json(0), Json("2"), Json()}) {
    document["version"] = version;
    CHECK(plan.refusal(sealed_text(document))
              .find("plan.json: version: got " + version.dump() +
                    ", but this program reads version 2 of the plan") != std::string::npos);
    CHECK_FALSE(plan.is_damaged(sealed_text(document)));
  }
  document.erase("version");
  CHECK(plan.refusal(document.dump()).find("got 1, but this program reads version 2") != std::string::npos);
  document["version"] = kPlanVersion;
  document["scenario"]["version"] = kScenarioVersion + 1;
  CHECK(plan.refusal(sealed_text(document))
            .find("plan.json: scenario.version: got 2, but this program reads version 1") !=
        std::string::npos);
}

TEST_CASE("plan: more seeds make no other plan, any other change does") {
  const std::string id = plan_id(with_seeds(2));
  CHECK(plan_id(with_seeds(1)) == id);
  CHECK(plan_id(with_seeds(1), true) != plan_id(with_seeds(2), true));
  CHECK(plan_id(with_seeds(2), true) != id);
  // A document that says nothing of seeds, and one that says their number alone.
  Scenario counted = small_scenario();
  counted.document["seeds"] = {{"count", 2}};
  CHECK(plan_id(counted) == plan_id(small_scenario()));
  Scenario other = with_seeds(2);
  other.document["title"] = "another";
  CHECK(plan_id(other) != id);
  other = with_seeds(2);
  other.cells[0].id = "other data";  // of seed 0
  CHECK(plan_id(other) != id);
}

TEST_CASE("plan: where two documents differ") {
  const Json left = Json::parse(R"({"train": {"steps": 4, "lr": 1}, "seeds": 3, "arms": {"a": {}}})");
  const Json right = Json::parse(R"({"train": {"steps": 5, "lr": 1}, "seeds": {"count": 3}, "title": "t",
                                     "arms": {"a": {}}})");
  CHECK(differing_paths(left, right) == std::vector<std::string>{"train.steps", "seeds", "title"});
  CHECK(differing_paths(left, left).empty());
}

}  // namespace moelab::plan_test
