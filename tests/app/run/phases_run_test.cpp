/// Cells whose training has phases, or ends before its steps are done.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "app/run/cell.h"
#include "app/run/search.h"
#include "app/scenario/scenario.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/scenario/refused.h"

namespace moelab::phases_run_test {
namespace {

Json one_cell() {
  Json scenario = tiny();
  scenario.erase("arms");
  scenario.erase("sweep");
  scenario["seeds"] = {{"root", 1}, {"count", 1}};
  scenario["train"]["steps"] = 20;
  scenario["train"]["record_every"] = 5;
  scenario["train"]["lr"] = 0.05;
  return scenario;
}

CellResult run(const Json& scenario, int seed = 0) {
  const Scenario expanded = expand_scenario(scenario, "", {});
  return run_cell(expanded.cells.at(static_cast<std::size_t>(seed)), [](double) { return false; });
}

double metric(const CellResult& result, const std::string& name) {
  const auto found = result.metrics.find(name);
  REQUIRE_MESSAGE(found != result.metrics.end(), name);
  return found->second;
}

std::string id_of(const Json& scenario) {
  return expand_scenario(scenario, "", {}).cells.front().id;
}

}  // namespace

TEST_CASE("one phase without fields of its own gives the numbers of no phases") {
  Json scenario = one_cell();
  const CellResult plain = run(scenario);
  scenario["phases"] = Json::array({{{"name", "only"}}});
  const CellResult phased = run(scenario);
  REQUIRE(plain.trace.size() == phased.trace.size());
  for (const auto& [name, value] : plain.metrics) {
    CHECK(metric(phased, name) == value);
    CHECK(metric(phased, "only." + name) == value);
  }
}

TEST_CASE("phases: own metrics, those of the last unprefixed, steps through, own test data") {
  Json scenario = one_cell();
  scenario["evaluations"] = {{"wide", {{"data.noise_std", 2.0}}}};
  scenario["phases"] = {{{"name", "pre"}, {"train", {{"steps", 10}}}},
                        {{"name", "post"},
                         {"data", {{"noise_std", 0.5}}},
                         {"train", {{"steps", 15}, {"lr", 0.01}}},
                         {"loss", {{"switch", 0.1}}},
                         {"learns", Json::array({"router"})}}};
  const CellResult result = run(scenario);
  REQUIRE(result.state == CellResult::State::done);
  std::vector<std::int64_t> steps;
  for (const TraceEntry& entry : result.trace) steps.push_back(entry.step);
  CHECK(steps == std::vector<std::int64_t>{0, 5, 10, 15, 20, 25});
  CHECK(metric(result, "test_loss_soft") == metric(result, "post.test_loss_soft"));
  CHECK(metric(result, "wide.test_loss_soft") == metric(result, "post.wide.test_loss_soft"));
  CHECK(metric(result, "pre.test_loss_soft") == result.trace[2].metrics.at("test_loss_soft"));
  CHECK(metric(result, "pre.test_loss_soft") != metric(result, "post.test_loss_soft"));
  CHECK(metric(result, "pre.wide.test_loss_soft") == result.trace[2].metrics.at("wide.test_loss_soft"));
  // A first phase is what it is whatever follows.
  Json first = scenario;
  first["phases"].erase(1);
  CHECK(metric(run(first), "test_loss_soft") == metric(result, "pre.test_loss_soft"));
}

TEST_CASE("training stops at the first record at a level, and says whether it did") {
  Json scenario = one_cell();
  const CellResult whole = run(scenario);
  const double level = whole.trace[2].metrics.at("train_loss");
  REQUIRE(whole.trace[1].metrics.at("train_loss") > level);
  scenario["train"]["until"] = {{"metric", "train_loss"}, {"below", level}};
  const CellResult stopped = run(scenario);
  CHECK(stopped.state == CellResult::State::done);
  CHECK(stopped.trace.back().step == 10);
  CHECK(metric(stopped, "until_reached") == 1);
  CHECK(metric(stopped, "train_loss") == level);  // schedules go by the steps of the cap
  scenario["train"]["until"] = {{"metric", "train_loss"}, {"below", 0.0}};
  const CellResult missed = run(scenario);
  CHECK(missed.state == CellResult::State::done);
  CHECK(missed.trace.back().step == 20);
  CHECK(metric(missed, "until_reached") == 0);
  CHECK(metric(missed, "train_loss") == metric(whole, "train_loss"));
  scenario["train"]["until"] = {{"metric", "train_loss"}, {"above", 0.0}};
  CHECK(run(scenario).trace.back().step == 0);
}

TEST_CASE("training stops at a budget of operations: 6 a step, row and parameter") {
  Json scenario = one_cell();
  scenario["metrics"] = {"task", "training"};
  // A linear router of 4 inputs without bias and constant experts of 2 outputs, 3 experts, batches of 10.
  const double step = 6.0 * (4 * 3 + 2 * 3) * 10;
  scenario["train"]["until"] = {{"flops", 12 * step}};
  const CellResult result = run(scenario);
  CHECK(metric(result, "train_steps") == 15);
  CHECK(metric(result, "train_flops") == 15 * step);
  CHECK(metric(result, "until_reached") == 1);
  CHECK(result.trace[1].metrics.at("train_flops") == 5 * step);
  scenario["model"]["gating"] = {{"train", {{"kind", "topk"}, {"k", 2}}}};
  CHECK(metric(run(scenario), "train_flops") < 20 * step);
}

TEST_CASE("a plateau: no value of the last ones is below the least before by the share that counts") {
  CHECK(!is_plateau({3, 2, 1}, 3, 0.1));
  CHECK(!is_plateau({4, 3, 2, 1}, 3, 0.1));
  CHECK(is_plateau({1, 2, 0.95, 3}, 3, 0.1));
  CHECK(!is_plateau({1, 2, 0.85, 3}, 3, 0.1));
  CHECK(is_plateau({1, std::numeric_limits<double>::quiet_NaN(), 1, 1}, 2, 0));
  Json scenario = one_cell();
  scenario["train"]["until"] = {{"plateau", {{"metric", "train_loss"}, {"records", 1}, {"relative", 1.0}}}};
  CHECK(run(scenario).trace.back().step == 5);
}

TEST_CASE("a rise: the first value that is no new least one, if it is low or far above the least") {
  Json scenario = one_cell();
  scenario["train"]["lr"] = 3;  // too large, so that the loss rises
  const auto losses = [](const CellResult& result) {
    std::vector<double> values;
    for (const TraceEntry& entry : result.trace) values.push_back(entry.metrics.at("train_loss"));
    return values;
  };
  const std::vector<double> whole = losses(run(scenario));
  const auto first_after = [&](double below, double by) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] >= least && (whole[i] <= below || whole[i] > least + by)) return i + 1;
      least = std::min(least, whole[i]);
    }
    return whole.size();
  };
  const auto stopped_after = [&](double below, double by) {
    scenario["train"]["until"] = {{"rise", {{"metric", "train_loss"}, {"below", below}, {"by", by}}}};
    return losses(run(scenario)).size();
  };
  REQUIRE(first_after(1e9, 0) < whole.size());
  CHECK(stopped_after(1e9, 0) == first_after(1e9, 0));
  CHECK(stopped_after(-1, 0) == first_after(-1, 0));
  CHECK(stopped_after(-1, 1e300) == whole.size());
}

TEST_CASE("phases stop by rules of their own") {
  Json scenario = one_cell();
  scenario["phases"] = {{{"name", "a"}, {"train", {{"until", {{"metric", "train_loss"}, {"above", 0.0}}}}}},
                        {{"name", "b"}}};
  const CellResult result = run(scenario);
  CHECK(metric(result, "a.until_reached") == 1);
  CHECK(result.metrics.find("until_reached") == result.metrics.end());
  CHECK(result.trace.back().step == 20);
}

TEST_CASE("shared streams: the problem of all seeds is that of seed 0") {
  Json scenario = one_cell();
  scenario["seeds"] = {{"root", 1}, {"count", 2}, {"shared", {"problem", "test"}}};
  scenario["save"] = Json::array({"routing"});
  scenario["train"]["steps"] = 1;
  const CellResult first = run(scenario, 0), second = run(scenario, 1);
  const auto inputs = [](const CellResult& result) {
    for (const SavedArray& array : result.arrays)
      if (array.name == "test_inputs") return array.values;
    return std::vector<double>();
  };
  REQUIRE(!inputs(first).empty());
  CHECK(inputs(first) == inputs(second));
  CHECK(metric(first, "train_loss") != metric(second, "train_loss"));
  scenario["seeds"].erase("shared");
  CHECK(inputs(run(scenario, 1)) != inputs(first));
}

TEST_CASE("the new fields are in a cell's id where they are not at their defaults") {
  const Json plain = one_cell();
  const auto changed = [&](const char* pointer, const Json& value) {
    Json scenario = plain;
    scenario[Json::json_pointer(pointer)] = value;
    return id_of(scenario);
  };
  const std::string id = id_of(plain);
  CHECK(changed("/loss", {{"reduction", "sum"}}) == id);
  CHECK(changed("/loss", {{"reduction", "mean"}}) != id);
  CHECK(changed("/data/independent", false) == id);
  CHECK(changed("/data/independent", true) != id);
  CHECK(changed("/phases", Json::array()) == id);
  CHECK(changed("/phases", Json::array({{{"name", "only"}}})) != id);
  CHECK(changed("/seeds/shared", Json::array()) == id);
  CHECK(changed("/seeds/shared", Json::array({"train"})) != id);
  CHECK(changed("/train/until", {{"flops", 1e9}}) != id);
  CHECK(changed("/model/input_width", 5) != id);
  Json two = plain;
  two["phases"] = {{{"name", "a"}}, {{"name", "b"}, {"train", {{"steps", 20}}}}};
  const std::string of_two = id_of(two);
  two["phases"][1]["train"]["steps"] = 21;
  CHECK(id_of(two) != of_two);
}

TEST_CASE("phases and stopping rules that are refused, at their places") {
  const auto refused = [](const char* pointer, const Json& value, const char* path, const char* message) {
    Json scenario = one_cell();
    scenario[Json::json_pointer(pointer)] = value;
    check_refused(scenario, "", {}, path, message);
  };
  refused("/phases", Json::array({{{"name", "a"}}, {{"name", "a"}}}), "phases[1].name",
          "another phase or an evaluation has");
  refused("/phases", Json::array({{{"name", "a.b"}}}), "phases[0].name", "without dots");
  refused("/phases", Json::array({{{"name", "a"}, {"train", {{"stepz", 3}}}}}), "phases[0].train.stepz",
          "steps");
  refused("/phases", Json::array({{{"name", "a"}, {"train", {{"steps", -3}}}}}), "phases[0].train.steps",
          "got -3");
  refused("/phases", Json::array({{{"name", "a"}, {"learns", Json::array({"gates"})}}}),
          "phases[0].learns[0]", "gates");
  refused("/train/until", {{"metric", "train_los"}, {"below", 1}}, "train.until.metric", "train_loss");
  refused("/train/until", {{"metric", "train_loss"}}, "train.until.metric", "needs one level");
  refused("/train/until", {{"below", 1}}, "train.until", "names no rule");
  refused("/train/until", {{"rise", {{"metric", "train_los"}, {"below", 1}, {"by", 1}}}},
          "train.until.rise.metric", "train_loss");
  refused("/train/until", {{"metric", "silhouette"}, {"below", 1}}, "train.until.metric", "overlap");
  Json phased = one_cell();
  phased["phases"] = Json::parse(R"([{"name": "a"}, {"name": "b"}])");
  phased["metrics"] =
      Json::parse(R"(["task", "saturation", {"kind": "convergence", "metric": "a.train_nmse"}])");
  check_refused(phased, "", {}, "metrics[2].metric", "needs a metric of every recorded step");
  phased["metrics"].erase(2);
  phased["phases"][1]["train"]["until"] = {{"metric", "routing_saturation"}, {"above", 0.9}};
  check_refused(phased, "", {}, "phases[1].train.until.metric", "known before the last step");
  Json centroids = one_cell();
  centroids["model"]["router"] = {{"kind", "nearest_centroid"}};
  centroids["phases"] = Json::parse(R"([{"name": "a"}, {"name": "b", "learns": ["experts"]}])");
  check_refused(centroids, "", {}, "phases[1].learns", "goes on moving");
  centroids["model"]["router"]["trainable"] = false;
  CHECK_NOTHROW(expand_scenario(centroids, "", {}));
}

}  // namespace moelab::phases_run_test
