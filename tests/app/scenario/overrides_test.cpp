/// Dotted paths that lead into lists and maps, in every place of overrides.

#include "app/scenario/overrides.h"

#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/scenario/example.h"

namespace moelab::overrides_test {
namespace {

Scenario after(const std::vector<std::string>& settings, const Json& document = example_scenario()) {
  return expand_scenario(document, "", settings);
}

void check_refused(const Json& document, const std::vector<std::string>& settings, const std::string& place,
                   const std::string& message) {
  CAPTURE(settings.empty() ? place : settings.back());
  try {
    after(settings, document);
    FAIL_CHECK("accepted");
  } catch (const UserError& error) {
    CHECK(error.path() == place);
    CHECK_MESSAGE(error.message().find(message) != std::string::npos, error.message());
  }
}

Json metrics_of(const Scenario& scenario, std::size_t cell = 0) {
  return config_json(*scenario.cells.at(cell).options).at("metrics");
}

}  // namespace

TEST_CASE("overrides: --set reaches the entries of lists") {
  const Scenario scenario =
      after({"figures.0.y=test_nmse_soft", "metrics.1.shuffles=5", "metrics.2=load", "save.1=weights",
             "save.0=routing", "claims.0.left.where.data.train_samples=640"});
  CHECK(scenario.written_figures[0].at("y") == "test_nmse_soft");
  CHECK(scenario.written_figures[0].at("x") == "data.train_samples");
  CHECK(metrics_of(scenario) == Json::parse(R"([{"kind": "task", "records": "every"},
                                                {"kind": "sparsity", "shuffles": 5, "records": "every"},
                                                {"kind": "load", "records": "every"}])"));
  CHECK(config_json(*scenario.cells[0].options).at("save") == Json({"routing", "weights"}));
  CHECK(std::get<Comparison>(scenario.claims[0].statement).left.where ==
        SweepPoint{{"data.train_samples", 640}});

  const Scenario lists = after({"figures.0.y=[\"train_loss\", \"train_nmse\"]",
                                "figures.0.y.1=test_loss_soft", "sweep.data.train_samples.3=10240"});
  CHECK(lists.written_figures[0].at("y") == Json({"train_loss", "test_loss_soft"}));
  CHECK(config_json(*lists.cells[15].options).at("data").at("train_samples") == 10240);
}

TEST_CASE("overrides: a list that the scenario leaves out is its default") {
  Json document = example_scenario();
  for (const char* part : {"metrics", "claims", "figures"}) document.erase(part);
  const Json usual = metrics_of(after({}, document));
  Json changed = metrics_of(after({"metrics.0=overlap"}, document));
  CHECK(changed[0].at("kind") == "overlap");
  CHECK(usual[0].at("kind") == "task");
  changed[0] = usual[0];
  CHECK(changed == usual);
}

TEST_CASE("overrides: profiles, arms, sweeps and evaluations reach them, too") {
  Json document = example_scenario();
  document["figures"] = Json::array();
  document["arms"] = Json::parse(R"({"learned": {}, "frozen": {"metrics.2": "load"}})");
  document["sweep"] = Json::parse(R"({"metrics.1.shuffles": [5, 7]})");
  document["profiles"] =
      Json::parse(R"({"quick": {"claims.0.left.metric": "train_loss", "seeds.count": 1}})");
  document["evaluations"] =
      Json::parse(R"({"noisy": {"data.contamination": {"kind": "noise", "std": 1}, "data.weights": null}})");
  const Scenario scenario =
      expand_scenario(document, "quick", {"evaluations.noisy.data.contamination.std=3"});
  REQUIRE(scenario.cells.size() == 4);
  CHECK(metrics_of(scenario, 0)[1].at("shuffles") == 5);
  CHECK(metrics_of(scenario, 1)[1].at("shuffles") == 7);
  CHECK(metrics_of(scenario, 1)[2].at("kind") == "router_norms");
  CHECK(metrics_of(scenario, 3)[2].at("kind") == "load");
  CHECK(std::get<Comparison>(scenario.claims[0].statement).left.metric == "train_loss");
  CHECK(config_json(*scenario.cells[0].options).at("evaluations").at("noisy").at("contamination").at("std") ==
        3);
}

TEST_CASE("overrides: an entry that is not there is refused with the number of entries") {
  const Json example = example_scenario();
  check_refused(example, {"metrics.3=load"}, "--set metrics.3",
                "leads to entry '3' of a list that has 3 entries, 0 … 2");
  check_refused(example, {"figures.1.y=train_loss"}, "--set figures.1.y",
                "leads to entry '1' of a list that has 1 entry, 0");
  check_refused(example, {"figures=[]", "figures.0.y=train_loss"}, "--set figures.0.y",
                "of a list that has no entries");
  for (const char* key : {"y", "-1", "+1", "1e0", "0x", "", "99999999999999999999999"}) {
    check_refused(example, {"figures." + std::string(key) + "=3"}, "--set figures." + std::string(key),
                  "leads to entry '" + std::string(key) + "' of a list that has 1 entry");
  }
  check_refused(example, {"sweep.data.train_samples.4=3"}, "--set sweep.data.train_samples.4",
                "4 entries, 0 … 3");
  check_refused(example, {"train.steps.0=3"}, "--set train.steps.0",
                "leads into 20000, which has no field '0'");
  Json document = example;
  document["arms"]["frozen"]["metrics.7"] = "load";
  check_refused(document, {}, "arms.frozen.metrics.7", "leads to entry '7' of a list that has 3 entries");
}

TEST_CASE("overrides: a wrong value is told at the override that leads into the list") {
  const Json example = example_scenario();
  check_refused(example, {"metrics.1.shuffles=0"}, "--set metrics.1.shuffles", "got 0, needs");
  check_refused(example, {"metrics.1={\"kind\": \"sparsity\", \"shuffles\": 0}"}, "--set metrics.1.shuffles",
                "got 0, needs");
  check_refused(example, {"metrics.0=tsk"}, "--set metrics.0", "did you mean 'task'?");
  check_refused(example, {"figures.0.y=train_los"}, "--set figures.0.y", "did you mean 'train_loss'?");
  check_refused(example, {"figures.0={\"id\": \"a\", \"x\": \"data.dim\", \"y\": \"train_loss\"}"},
                "--set figures.0.x", "unknown swept path 'data.dim'");
  check_refused(example, {"claims.0.left={\"arm\": \"learnt\", \"metric\": \"train_loss\"}"},
                "--set claims.0.left.arm", "did you mean 'learned'?");
  Json document = example;
  document["arms"]["frozen"]["metrics.1.shuffles"] = 0;
  check_refused(document, {}, "arms.frozen.metrics.1.shuffles", "got 0, needs");
  document = example;
  document["sweep"]["metrics.1.shuffles"] = Json({5, 0});
  check_refused(document, {}, "sweep.metrics.1.shuffles[1]", "got 0, needs");
}

TEST_CASE(
    "overrides: one that a later one of the same set replaces is refused, a narrower one after it not") {
  const Json linear = Json::parse(R"({"kind": "linear"})");
  const std::string field = "model.router.trainable", whole = "model.router";
  const std::string message =
      "is without effect: 'model.router', set after it, replaces it; needs 'model.router' "
      "before it, or one of the two";
  for (const bool is_arm : {true, false}) {
    Json document = example_scenario();
    Json& overrides = is_arm ? document["arms"]["frozen"] : document["profiles"]["quick"];
    overrides = Json::object();
    overrides[field] = false;
    overrides[whole] = linear;
    check_refused(document, {}, (is_arm ? "arms.frozen." : "profiles.quick.") + field, message);
    overrides = Json::object();
    overrides[whole] = linear;
    overrides[field] = false;
    CHECK_NOTHROW(after({}, document));
  }
  Json document = example_scenario();
  document["evaluations"]["other"]["data.target.dim"] = 10;
  document["evaluations"]["other"]["data.target"] = Json::parse(R"({"kind": "constant", "dim": 10})");
  check_refused(document, {}, "evaluations.other.data.target.dim",
                "'data.target', set after it, replaces it");

  Json plain = example_scenario();
  plain.erase("arms");
  for (const char* part : {"claims", "figures"}) plain.erase(part);
  check_refused(plain, {field + "=false", whole + "=" + linear.dump()}, "--set " + field, message);
  const Scenario frozen = after({whole + "=" + linear.dump(), field + "=false"}, plain);
  CHECK(config_json(*frozen.cells[0].options).at("model").at("router").at("trainable") == false);
  check_refused(plain, {"train.steps=5", "train.steps=20"}, "--set train.steps",
                "is set a second time; needs 'train.steps' once");
  check_refused(plain, {"figures[0].y=train_loss", "figures.0={}"}, "--set figures[0].y",
                "is without effect");
}

TEST_CASE("overrides: a field is tuned once, and an unknown one told with the nearest") {
  Json document = example_scenario();
  const Json range = Json::parse(R"({"low": 0.001, "high": 0.1})");
  document["tune"] = {{"train.lr.expert", range}, {"train.lr", range}};
  check_refused(document, {}, "tune.train.lr", "'train.lr.expert' is tuned, too");
  document["tune"] = {{"train.lr", range}, {"train.lr.expert", range}};
  check_refused(document, {}, "tune.train.lr.expert", "'train.lr' is tuned, too");
  document["tune"] = {{"train.lr.experts", range}};
  check_refused(document, {}, "tune.train.lr.experts", "unknown key 'experts'; did you mean 'expert'?");
}

}  // namespace moelab::overrides_test
