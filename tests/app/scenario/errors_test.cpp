/// Errors as a compiler reports them: all of a file at once, each with its place and the nearest name.

#include "app/scenario/errors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "app/scenario/scenario.h"
#include "tests/app/cli/answer.h"
#include "tests/app/scenario/example.h"
#include "tests/temporary_folder.h"

namespace moelab::errors_test {
namespace {

constexpr const char* kTwelveMistakes = R"({
  "//": "a comment", "//": ["another", {"//": 1, "//": {"//": 2}}],
  "name": "twelve",
  "titel": "x",
  "data": {
    "generator": "gausian_mixture", "clusters": 4, "dim": 4,
    "target": {"kind": "constant", "dim": 1}, "train_samples": 100, "test_samples": 50
  },
  "model": {
    "experts": 0, "router": {"kind": "linaer"}, "expert": "constant", "gatng": "soft"
  },
  "train": {"lr": -1, "steps": 10.5, "batch_sise": 10},
  "metrics": ["task", "ari"],
  "arms": {"a": {"model.rooter.kind": "linear"}, "b": {}},
  "claims": [
    {"id": "one", "left": {"arm": "a", "metric": "test_nmse_top1"}, "op": "<",
     "right": {"arm": "c", "metric": "tset_nmse_top1"}},
    {"id": "two", "left": {"arm": "b", "metric": "test_nmse_top1"}, "op": "<", "rigth": {"value": 1}}
  ]
})";

std::vector<ScenarioError> errors_in(const std::string& text, const std::vector<std::string>& settings = {}) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file.json";
  std::ofstream(file) << text;
  try {
    load_scenario(file, "", settings);
  } catch (const InvalidOption& error) {
    return errors_of(error);
  }
  return {};
}

const ScenarioError* error_at(const std::vector<ScenarioError>& errors, const std::string& path) {
  const auto found = std::find_if(errors.begin(), errors.end(),
                                  [&](const ScenarioError& error) { return error.path() == path; });
  return found == errors.end() ? nullptr : &*found;
}

/// Checks that there are these errors, each with its line, and no others.
void check_places(const std::vector<ScenarioError>& errors,
                  const std::vector<std::pair<std::string, std::size_t>>& places) {
  std::string all;
  for (const ScenarioError& error : errors) all += error.path() + ": " + error.message() + "\n";
  CAPTURE(all);
  for (const auto& place : places) {
    CAPTURE(place.first);
    const ScenarioError* const error = error_at(errors, place.first);
    REQUIRE(error);
    CHECK(error->line == place.second);
    CHECK(error->column > 1);
  }
  CHECK(errors.size() == places.size());
}

}  // namespace

TEST_CASE("errors: a file with twelve mistakes has one answer with twelve places") {
  const std::vector<ScenarioError> errors = errors_in(kTwelveMistakes);
  std::string all;
  for (const ScenarioError& error : errors) all += error.path() + ": " + error.message() + "\n";
  CAPTURE(all);
  struct Mistake {
    const char* path;
    std::size_t line, column;
    const char* nearest;
  };
  for (const Mistake& mistake : {Mistake{"titel", 4, 3, "title"},
                                 {"data.generator", 6, 5, "gaussian_mixture"},
                                 {"model.experts", 10, 5, ""},
                                 {"model.router.kind", 10, 30, "linear"},
                                 {"model.gatng", 10, 71, "gating"},
                                 {"train.lr", 12, 13, ""},
                                 {"train.steps", 12, 23, ""},
                                 {"train.batch_sise", 12, 38, "batch_size"},
                                 {"metrics[1]", 13, 23, "top1_cluster_ari"},
                                 {"arms.a.model.rooter.kind", 14, 18, "router"},
                                 {"claims[1].rigth", 18, 80, "right"},
                                 {"claims[0].right.arm", 17, 16, ""}}) {
    CAPTURE(mistake.path);
    const ScenarioError* const error = error_at(errors, mistake.path);
    REQUIRE(error);
    CHECK(error->line == mistake.line);
    CHECK(error->column == mistake.column);
    const Json json = error_json(*error);
    CHECK(json.at("nearest") == (*mistake.nearest ? Json(mistake.nearest) : Json()));
    CHECK_FALSE(json.at("given").is_null());
    CHECK_FALSE(json.at("allowed").is_null());
  }
  CHECK(error_at(errors, "claims[0].right.metric"));
  CHECK(errors.size() == 13);
}

TEST_CASE("errors: every arm and every swept value, also beside a missing field") {
  const std::vector<ScenarioError> errors = errors_in(R"({
  "name": "many",
  "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 6},
  "model": {"experts": 4},
  "train": {"steps": 10},
  "arms": {
    "a": {"model.router.kind": "cosin", "train.steps": -3},
    "b": {"model.expertz": 4, "train.steps": -4}
  },
  "sweep": {
    "model.experts": [0, 4, -1],
    "data.clusters": [2, -2],
    "model.router.temperature": [1, 2]
  }
})");
  check_places(errors, {{"data.target", 3},
                        {"arms.a.model.router.kind", 7},
                        {"arms.a.train.steps", 7},
                        {"arms.b.model.expertz", 8},
                        {"arms.b.train.steps", 8},
                        {"sweep.model.experts[0]", 11},
                        {"sweep.model.experts[2]", 11},
                        {"sweep.data.clusters[1]", 12}});
}

TEST_CASE("errors: twelve mistakes of other kinds, which different stages find") {
  const std::vector<ScenarioError> errors = errors_in(R"({
  "name": "kinds",
  "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 4,
           "target": {"kind": "constant", "dim": 1}, "train_samples": 100, "test_samples": 50},
  "model": {"experts": 4, "router": "cosine", "expert": "constant",
            "gating": {"train": {"kind": "topk", "k": 9}, "eval": "top1"}},
  "train": {"lr": 0.1, "steps": 10, "batch_size": 10, "epocs": 2},
  "metrics": ["task", "ari"],
  "arms": {"a": {"model.router.temprature": 3}, "b": {}},
  "sweep": {"data.train_sample": [50, 100]},
  "claims": [
    {"id": "c", "left": {"arm": "a", "metric": "test_loss"}, "op": "<", "right": {"arm": "d", "metric": "train_nmse"}},
    {"id": "e", "left": {"arm": "a"}, "op": "<", "right": {"value": 1}},
    {"id": "c", "left": {"arm": "a", "metric": "train_nmse"}, "op": "<", "right": {"value": 1}},
    {"id": "f", "left": {"arm": "a", "metric": "train_nmse"}, "op": "less", "right": {"value": 1}}
  ],
  "figures": [{"id": "g", "x": "steps", "y": "train_nmse"}, {"id": "h", "x": "step", "y": "dead"}],
  "profiles": {"quick": {"train.stps": 3}}
})");
  check_places(errors, {{"train.epocs", 7},
                        {"metrics[1]", 8},
                        {"arms.a.model.router.temprature", 9},
                        {"sweep.data.train_sample", 10},
                        {"claims[0].left.metric", 12},
                        {"claims[0].right.arm", 12},
                        {"claims[1].left.metric", 13},
                        {"claims[2].id", 14},
                        {"claims[3].op", 15},
                        {"figures[0].x", 17},
                        {"figures[1].y", 17},
                        {"profiles.quick.train.stps", 18},
                        {"model.gating.train.k", 6}});
}

TEST_CASE("errors: the answer in JSON and in text") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "file.json").string();
  std::ofstream(file) << kTwelveMistakes;
  const Answer text = ask({"validate", file});
  CHECK(text.status == 2);
  CHECK(text.err.find("moelab: error: titel: unknown key 'titel'; did you mean 'title'?") == 0);
  CHECK(text.err.find(" (" + file + ":4:3)\n") != std::string::npos);
  CHECK(text.err.ends_with("moelab: 13 errors\n"));
  const Json json = Json::parse(ask({"validate", file, "--json"}).out);
  CHECK(json.at("errors").size() == 13);
  CHECK(json.at("error").at("path") == "titel");
  const Json steps = json.at("errors")[7];
  CHECK(steps.at("path") == "train.steps");
  CHECK(steps.at("given") == "10.5");
  CHECK(steps.at("allowed") == "a whole number of at least 1");
}

TEST_CASE("errors: no error follows from another") {
  Json document = example_scenario();
  document["metrics"] = {"tsak", "sparsity"};  // the claims' metrics are of the group task
  CHECK(errors_in(document.dump()).size() == 1);
  document = example_scenario();
  document["data"].erase("train_samples");
  document["data"]["trian_samples"] = 100;
  CHECK(errors_in(document.dump()).size() == 1);
  // A claim that is set aside is not missed by the figure that shows it.
  document = example_scenario();
  document["claims"] =
      Json::parse(R"([{"id": "c", "left": {"arm": "learned"}, "op": "<", "right": {"value": 1}}])");
  document["figures"] = Json::parse(R"([{"kind": "claim", "id": "f", "claim": "c"}])");
  CHECK(errors_in(document.dump()).size() == 1);
}

TEST_CASE("errors: places of paths") {
  const std::string text = "{\"a.b\": {\"c\": [1, {\"ü\": 2, \"d\": 3}]},\n \"//\": {\"e\": 1}, \"e\": 2}";
  const auto at = [&](const std::string& path) {
    const TextPlace place = find_place(text, path);
    return std::pair(place.line, place.column);
  };
  CHECK(at("a.b") == std::pair<std::size_t, std::size_t>(1, 2));
  CHECK(at("a.b.c[1].d") == std::pair<std::size_t, std::size_t>(1, 28));
  CHECK(at("a.b.c[1].x") == std::pair<std::size_t, std::size_t>(1, 19));
  CHECK(at("e") == std::pair<std::size_t, std::size_t>(2, 18));
  CHECK(at("nowhere").first == 0);
  CHECK(find_place("3", "a").line == 0);
}

TEST_CASE("errors: parts of a message, whatever text was given, and the place of a syntax error") {
  const auto json = [](const char* path, const std::string& message) {
    return error_json(ScenarioError(UserError(path, message)));
  };
  const Json number = json("data.noise_std", "got \"needs x, y\", needs a finite number of at least 0");
  CHECK(number.at("given") == "\"needs x, y\"");
  CHECK(number.at("allowed") == "a finite number of at least 0");
  const Json name = json("claims[0].left.arm", unknown_name("arm", "a, b'", {"a, b", "c"}));
  CHECK(name.at("given") == "a, b'");
  CHECK(name.at("nearest") == "a, b");
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back("name_" + std::to_string(i));
  const Json cut = json("metrics[0]", unknown_name("metric", "name_x", many));
  for (const Json& allowed : cut.at("allowed")) CHECK(allowed.get<std::string>().starts_with("name_"));
  const Json syntax = json("folder/file.json:2:10", "duplicate key 'name'");
  CHECK(syntax.at("path") == "folder/file.json:2:10");
  CHECK(syntax.at("line") == 2);
  CHECK(syntax.at("column") == 10);
  CHECK(syntax.at("given") == "name");
}

TEST_CASE("errors: paths that settings abbreviate") {
  const std::string text = example_scenario().dump();
  for (const auto& [setting, nearest] :
       {std::pair("weight_decay=0.1", "train.weight_decay"), std::pair("wd=1", "train.weight_decay"),
        std::pair("epochs=2", "train.epochs"), std::pair("lr=2", "train.lr")}) {
    const std::string given = setting;
    CAPTURE(given);
    const std::vector<ScenarioError> errors = errors_in(text, {setting});
    REQUIRE(errors.size() == 1);
    CHECK_MESSAGE(error_json(errors.front()).at("nearest") == nearest, errors.front().message());
  }
}

TEST_CASE("metrics: the name of a metric chooses its group") {
  const auto cells = [](const Json& metrics) {
    Json document = example_scenario();
    document["metrics"] = metrics;
    return expand_scenario(document, "", {}).cells;
  };
  const std::string id = cells({"task", "sparsity", "load"}).front().id;
  CHECK(cells({"task", "top1_cluster_ari", "dead_experts"}).front().id == id);
  CHECK(cells({"task", "sparsity", "top1_cluster_nmi", "dead_experts", "co_activation"}).front().id == id);
  CHECK_THROWS_AS(cells({"task", "task"}), UserError);
  Json document = example_scenario();
  document["metrics"] = {"task", "dead_expert"};
  const std::vector<ScenarioError> errors = errors_in(document.dump());
  REQUIRE(errors.size() == 1);
  CHECK(errors.front().message().starts_with(
      "unknown metric or group 'dead_expert'; did you mean 'dead_experts'? It "
      "belongs to the group 'load'. Allowed: "));
}

TEST_CASE("comments: keys that begin with // are not part of the document") {
  const Json plain = parse_json(R"({"a": [1, {"b": 2}]})", "x");
  CHECK(parse_json(
            R"({"//": 1, "a": [1, {"// c": {"//": 1, "//": [{"//": 1}]}, "b": 2, "//": null}], "//": ""})",
            "x") == plain);
  CHECK_THROWS_AS(parse_json(R"({"a": 1, "//": 2, "a": 1})", "x"), UserError);
}

}  // namespace moelab::errors_test
