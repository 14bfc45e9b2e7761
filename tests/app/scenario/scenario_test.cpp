#include "app/scenario/scenario.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "app/scenario/overrides.h"
#include "sim/base/error.h"
#include "tests/app/scenario/example.h"

namespace moelab::scenario_test {
namespace {

Scenario expanded(const Json& document) {
  return expand_scenario(document, "", {});
}

std::vector<std::string> ids(const Scenario& scenario) {
  std::vector<std::string> all;
  for (const Cell& cell : scenario.cells) all.push_back(cell.id);
  return all;
}

/// Ids by (arm, point, seed).
std::map<std::string, std::string> ids_by_label(const Scenario& scenario) {
  std::map<std::string, std::string> all;
  for (const Cell& cell : scenario.cells) {
    std::string label = cell.arm + " " + std::to_string(cell.seed);
    for (const auto& [path, value] : cell.point) label += " " + path + "=" + value.text();
    all[label] = cell.id;
  }
  return all;
}

}  // namespace

TEST_CASE("the example expands to arms × points × seeds, in this order, with distinct ids") {
  const Scenario scenario = expanded(example_scenario());
  CHECK(scenario.name == "fig3a");
  CHECK(scenario.arms == std::vector<std::string>{"learned", "frozen", "dense_small", "dense_large"});
  CHECK(scenario.sweep_paths == std::vector<std::string>{"data.train_samples"});
  REQUIRE(scenario.cells.size() == 4 * 4 * 5);
  const std::vector<std::string> all = ids(scenario);
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
  for (std::size_t i = 0; i < scenario.cells.size(); ++i) {
    const Cell& cell = scenario.cells[i];
    CHECK(cell.arm == scenario.arms[i / 20]);
    CHECK(cell.seed == static_cast<int>(i % 5));
    REQUIRE(cell.point.size() == 1);
    CHECK(cell.point[0].second == SweepValue(640 << (i / 5 % 4)));
    CHECK(config_json(*cell.options).at("data").at("train_samples") == to_json(cell.point[0].second));
    CHECK(cell.root_seed == 1);
    CHECK(cell.id.size() == 16);
    CHECK(cell.id.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(config_json(*scenario.cells[0].options).at("model").at("router").at("trainable") == true);
  CHECK(config_json(*scenario.cells[20].options).at("model").at("router").at("trainable") == false);
  CHECK(config_json(*scenario.cells[40].options).at("model").at("match") == "expert");
}

TEST_CASE("a configuration holds every part, resolved") {
  const Json config = config_json(*expanded(example_scenario()).cells[0].options);
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"data", "model", "loss", "train", "phases", "metrics", "save",
                                         "evaluations"});
  CHECK(config.at("train").at("precision") == "float");
  CHECK(config.at("model").at("gating").at("eval").at("kind") == "top1");
  CHECK(config.at("metrics")[1] ==
        Json::parse(R"({"kind": "sparsity", "shuffles": 20, "records": "every"})"));
  CHECK(resolve(config_shape(), config, "").dump() == config.dump());
}

TEST_CASE("resolving a scenario twice changes nothing") {
  const Json once = resolve(scenario_shape(), example_scenario(), "");
  CHECK(resolve(scenario_shape(), once, "").dump() == once.dump());
  CHECK(ids(expanded(once)) == ids(expanded(example_scenario())));
}

TEST_CASE("ids depend on the configuration alone, not on names, order or spelling") {
  const std::map<std::string, std::string> before = ids_by_label(expanded(example_scenario()));

  Json renamed = example_with("/name", R"("other")");
  renamed["title"] = "Another title";
  renamed["notes"] = Json::array({"tuned by hand"});
  renamed["figures"] = Json::array();
  CHECK(ids_by_label(expanded(renamed)) == before);

  const Json arms =
      Json::parse(R"({"new": {"model.router.init_scale": 1}, "frozen": {"model.router.trainable": false},
      "dense_small": {"model.match": "expert", "model.kind": "dense"}, "learned": {},
      "dense_large": {"model.kind": "dense", "model.match": "moe"}})");
  Json changed = example_scenario();
  changed["arms"] = arms;
  changed["sweep"]["data.train_samples"].push_back(10240);
  changed["seeds"]["count"] = 7;
  std::map<std::string, std::string> after = ids_by_label(expanded(changed));
  CHECK(after.size() == 5 * 5 * 7);
  for (const auto& [label, id] : before) CHECK(after[label] == id);

  Json arm_renamed = example_with("/claims", "[]");
  arm_renamed["arms"] = Json::parse(R"({"other_name": {}})");
  Json one_arm = example_with("/claims", "[]");
  one_arm["arms"] = Json::parse(R"({"learned": {}})");
  CHECK(ids(expanded(arm_renamed)) == ids(expanded(one_arm)));

  CHECK(ids(expanded(example_with("/data/noise_std", "1"))) ==
        ids(expanded(example_with("/data/noise_std", "1.0"))));
  Json shorter = example_scenario();
  shorter["data"].erase("spurious_dims");  // its default
  CHECK(ids_by_label(expanded(shorter)) == before);
  Json spelt_out = example_scenario();
  spelt_out["loss"] = Json::parse(R"({"task": "mse", "aux": 0, "z": 0.0})");
  spelt_out["model"]["layers"] = 1;
  CHECK(ids_by_label(expanded(spelt_out)) == before);
  spelt_out["loss"]["aux"] = 0.01;
  CHECK(ids(expanded(spelt_out)) != ids(expanded(example_scenario())));
  CHECK(ids(expanded(example_with("/data/noise_std", "1.5"))) != ids(expanded(example_scenario())));
  CHECK(ids(expanded(example_with("/seeds/root", "2"))) != ids(expanded(example_scenario())));
}

TEST_CASE("without arms and sweep there is one arm, base, and one point") {
  Json document = example_with("/claims", "[]");
  for (const char* key : {"arms", "sweep", "figures", "seeds", "profiles", "metrics", "save", "loss"}) {
    document.erase(key);
  }
  const Scenario scenario = expanded(document);
  CHECK(scenario.arms == std::vector<std::string>{"base"});
  CHECK(scenario.cells.size() == 5);
  CHECK(scenario.cells[0].point.empty());
  CHECK(config_json(*scenario.cells[0].options).at("metrics").size() == 5);
  CHECK(config_json(*scenario.cells[0].options).at("loss").at("task") == "mse");
}

TEST_CASE("a sweep is a grid whose first entry varies slowest; ranges double; zipped paths move together") {
  Json document = example_with("/figures", "[]");
  document["arms"] = Json::parse(R"({"learned": {}, "frozen": {"model.router.trainable": false}})");
  document["sweep"] = Json::parse(R"({"model.experts": {"log2range": [48, 192]},
                                      "zip": {"data.clusters": [8, 16], "data.dim": [2, 4]}})");
  const Scenario scenario = expanded(document);
  CHECK(scenario.sweep_paths == std::vector<std::string>{"model.experts", "data.clusters", "data.dim"});
  REQUIRE(scenario.cells.size() == 2 * 6 * 5);
  std::vector<std::vector<int>> points;
  for (std::size_t i = 0; i < 6; ++i) {
    const Json config = config_json(*scenario.cells[i * 5].options);
    points.push_back(
        {config.at("model").at("experts"), config.at("data").at("clusters"), config.at("data").at("dim")});
  }
  CHECK(points == std::vector<std::vector<int>>{
                      {48, 8, 2}, {48, 16, 4}, {96, 8, 2}, {96, 16, 4}, {192, 8, 2}, {192, 16, 4}});
}

TEST_CASE("a profile and --set change the document before it is expanded, --set last") {
  const Scenario scenario = expand_scenario(
      example_scenario(), "quick",
      {"seeds.count=2", "sweep.data.train_samples=[10, 20]", "arms.frozen.model.router.init_scale=2",
       "train.lr.router=0.5", "model.gating.eval.kind=soft", "title=a text, not JSON"});
  CHECK(scenario.profile == "quick");
  CHECK(scenario.title == "a text, not JSON");
  REQUIRE(scenario.cells.size() == 4 * 2 * 2);
  const Json config = config_json(*scenario.cells[4].options);
  CHECK(config.at("train").at("steps") == 2000);
  CHECK(config.at("train").at("lr").dump() == R"({"expert":0.01,"router":0.5})");
  CHECK(config.at("data").at("train_samples") == 10);
  CHECK(config.at("model").at("router").at("init_scale") == 2);
  CHECK(config.at("model").at("router").at("trainable") == false);
  CHECK(config.at("model").at("gating").at("eval").at("kind") == "soft");
  CHECK(ids(expand_scenario(scenario.document, "", {})) == ids(scenario));
}

TEST_CASE("overrides open short forms, defaults and whole objects") {
  const auto train_after = [](const char* setting) {
    Json document = example_scenario();
    document["train"]["lr"] = 0.01;
    document["train"].erase("optimizer");
    return config_json(*expand_scenario(document, "", {setting}).cells[0].options).at("train");
  };
  CHECK(train_after("train.lr.router=0.1").at("lr").dump() == R"({"expert":0.01,"router":0.1})");
  CHECK(train_after("train.weight_decay.expert=0.1").at("weight_decay").dump() ==
        R"({"expert":0.1,"router":0.0})");
  CHECK(train_after("train.optimizer.momentum=0.9").at("optimizer").dump() ==
        R"({"kind":"sgd","momentum":0.9})");
  CHECK(train_after("train.optimizer=adam").at("optimizer").at("kind") == "adam");
  CHECK_FALSE(train_after("train.record_every=null").contains("record_every"));
}

TEST_CASE("steps and epochs replace each other") {
  Json document = example_scenario();
  document["arms"] = Json::parse(R"({"learned": {"train.epochs": 3}, "frozen": {}})");
  const Scenario scenario = expanded(document);
  CHECK(config_json(*scenario.cells[0].options).at("train").at("epochs") == 3);
  CHECK_FALSE(config_json(*scenario.cells[0].options).at("train").contains("steps"));
  CHECK_FALSE(config_json(*scenario.cells[20].options).at("train").contains("epochs"));
  const Scenario set_last = expand_scenario(example_scenario(), "quick", {"train.epochs=2"});
  CHECK_FALSE(config_json(*set_last.cells[0].options).at("train").contains("steps"));
}

TEST_CASE("claims and figures get their defaults") {
  Json document =
      example_with("/figures/0", R"({"id": "loss", "x": "step", "y": ["train_loss", "test_loss_top1"],
                                                 "where": {"data.train_samples": 640.0}})");
  document["claims"] = Json::parse(R"([
      {"id": "a", "op": "~", "tolerance": 0.1, "left": {"arm": "learned", "metric": "effective_experts", "step": 0},
       "right": {"value": 1}, "at": [640, {"data.train_samples": 5120}], "reported": 1.3},
      {"id": "b", "op": "decreases", "arm": "learned", "metric": "test_nmse_top1", "along": "data.train_samples"},
      {"id": "c", "op": "increases", "arm": "learned", "metric": "router_signal_fraction", "along": "step"},
      {"id": "d", "op": "<", "left": {"arm": "learned", "metric": "train_loss", "where": {"data.train_samples": 640}},
       "right": {"arm": "learned", "metric": "train_loss", "factor": 0.6}, "at": "last"}])");
  const Scenario scenario = expanded(document);
  CHECK(std::get<Comparison>(scenario.claims[0].statement).left.factor == 1);
  CHECK(std::get<Comparison>(scenario.claims[3].statement).right.factor == 0.6);
  CHECK(std::get<Comparison>(scenario.claims[0].statement).at.listed.size() == 2);
  CHECK(std::get<Comparison>(expanded(example_scenario()).claims[0].statement).at.which ==
        ClaimPlaces::Which::each);
  CHECK(scenario.written_figures[0].at("series") == "arm");
  CHECK(scenario.written_figures[0].at("x_scale") == "linear");
}

TEST_CASE("the JSON Schema covers the whole scenario") {
  const Json schema = scenario_file_schema();
  CHECK(schema.at("then").at("required") == Json::array({"name"}));
  CHECK(schema.at("else").at("required") == Json::array({"name", "data", "model", "train"}));
  for (const Field& field : scenario_shape().fields) {
    CHECK(schema.at("properties").contains(field.name));
    CHECK(schema.at("else").at("properties").contains(field.name));
  }
}

}  // namespace moelab::scenario_test
