/// The metric group `patches` on cells whose values are known.

#include <doctest/doctest.h>

#include "app/run/cell.h"
#include "app/scenario/scenario.h"

namespace moelab::patches_metrics_test {
namespace {

/// The metrics of a cell of two steps. `changes` is a merge patch.
MetricValues measured(const char* changes) {
  Json document = Json::parse(R"({
    "name": "patches",
    "data": {"generator": "patches", "dim": 12, "patches": 4, "law": "own_patch", "train_samples": 40,
             "test_samples": 200},
    "model": {"experts": 3, "router": "linear", "expert": {"kind": "filters", "filters": 2},
              "gating": {"train": {"kind": "patch_choice", "patches": 1},
                         "eval": {"kind": "patch_choice", "patches": 1}}},
    "loss": {"task": "cross_entropy"},
    "train": {"optimizer": "sgd", "lr": 0, "batch_size": 20, "steps": 2},
    "metrics": ["task", "patches"], "seeds": {"count": 1}})");
  document["data"]["law"] = {{"kind", "own_patch"}, {"patterns", 6}};
  document.merge_patch(Json::parse(changes));
  const Scenario scenario = expand_scenario(document, "", {});
  const CellResult result = run_cell(scenario.cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  return result.metrics;
}

constexpr const char* kFeatures =
    R"({"data": {"law": {"kind": "feature_noise", "clusters": 3, "patterns": null}},
        "model": {"router": {"kind": "sequence_mean", "sum": true},
                  "gating": {"train": {"kind": "topk", "k": 1, "patches": null},
                             "eval": {"kind": "topk", "k": 1, "patches": null}}}})";

}  // namespace

TEST_CASE("own patches: all are taken and none is dropped where experts take all patches") {
  const MetricValues all =
      measured(R"({"model": {"gating": {"train": {"patches": 4}, "eval": {"patches": 4}}}})");
  CHECK(all.at("own_patch_share") == 1);
  CHECK(all.at("irrelevant_dropped") == 0);
  const MetricValues one = measured("{}");
  CHECK(one.at("own_patch_share") < 1);
  CHECK(one.at("own_patch_share") > 0);
  // Three experts take at most 3 of 4 patches of a sample.
  CHECK(one.at("irrelevant_dropped") >= 1.0 / 12);
}

TEST_CASE("own patches: routers that the linear loss trained find them") {
  const MetricValues trained = measured(
      R"({"data": {"train_samples": 400}, "model": {"experts": 2, "router": {"kind": "linear", "init_scale": 0.01}},
          "loss": {"class_scores": 1}, "train": {"lr": 1, "steps": 200}})");
  CHECK(trained.at("own_patch_share") > 0.99);
  CHECK(trained.at("router_on_signal") > 0.6);  // (o_1 − o_2) / √2 has the cosine 0.71 with either
}

TEST_CASE("single experts: ties are errors, and random starts are near 1/2") {
  Json ties = Json::parse(kFeatures);
  ties["model"]["expert"] = {{"init_scale", 0}};
  const MetricValues zero = measured(ties.dump().c_str());
  CHECK(zero.at("expert_best_error") == 1);
  CHECK(zero.at("expert_other_error") == 1);
  const MetricValues random = measured(kFeatures);
  CHECK(random.at("expert_best_error") <= random.at("expert_other_error"));
  CHECK(random.at("expert_other_error") > 0.2);
  CHECK(random.at("expert_other_error") < 0.8);
  CHECK((random.at("start_agreement") >= 0 && random.at("start_agreement") <= 1));
  CHECK(random.at("score_spread") > 0);
}

TEST_CASE("single experts: a cluster without test samples is not one without errors") {
  Json few = Json::parse(kFeatures);
  few["model"]["expert"] = {{"init_scale", 0}};
  few["data"]["test_samples"] = 5;
  few["data"]["law"]["clusters"] = 6;
  const MetricValues values = measured(few.dump().c_str());
  CHECK(values.at("expert_best_error") == 1);
  CHECK(values.at("expert_other_error") == 1);
}

TEST_CASE("the start of experts is known at the last record alone, and in later phases") {
  Json scenario = Json::parse(kFeatures);
  const double every = measured(kFeatures).at("start_agreement");
  scenario["phases"] = Json::parse(R"([{"name": "first"}, {"name": "second"}])");
  const MetricValues phased = measured(scenario.dump().c_str());
  CHECK(phased.at("first.start_agreement") == every);  // nothing learns
  CHECK(phased.at("start_agreement") == every);
  scenario.erase("phases");
  scenario["train"] = {{"lr", 0.01}, {"steps", 20}};
  const double trained = measured(scenario.dump().c_str()).at("start_agreement");
  scenario["metrics"] = Json::parse(R"(["task", {"kind": "patches", "records": "last"}])");
  CHECK(measured(scenario.dump().c_str()).at("start_agreement") == trained);
}

TEST_CASE("a router that is zero has no direction and no spread") {
  Json zero = Json::parse(kFeatures);
  zero["model"]["router"]["init_scale"] = 0;
  const MetricValues values = measured(zero.dump().c_str());
  CHECK(values.find("router_on_centre") == values.end());
  CHECK(values.at("score_spread") == 0);
}

}  // namespace moelab::patches_metrics_test
