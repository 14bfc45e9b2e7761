/// --set and profiles on fields that a sweep or an arm sets: the program refuses settings without an effect.

#include <doctest/doctest.h>

#include "app/scenario/cells.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"

namespace moelab::override_effects_test {
namespace {

/// Two arms, no claims and figures, and this sweep.
Json document_with(const char* sweep, const char* other_arm = R"({"model.router.trainable": false})") {
  Json document = example_with("/sweep", sweep);
  document["arms"] = Json::object({{"learned", Json::object()}, {"other", Json::parse(other_arm)}});
  document["claims"] = document["figures"] = Json::array();
  return document;
}

void check_refused(const Json& document, const std::vector<std::string>& settings, const std::string& place,
                   const std::string& message, const std::string& profile = "") {
  CAPTURE(settings.empty() ? profile : settings.front());
  moelab::check_refused(document, profile, settings, place, message);
}

std::string whole(const char* path) {
  return std::string(path) + "=" + example_scenario().at(path).dump();
}

}  // namespace

TEST_CASE("override effects: --set on what the sweep sets, above or below it, is refused") {
  const Json samples = document_with(R"({"data.train_samples": [640, 1280]})");
  check_refused(samples, {"data.train_samples=640"}, "--set data.train_samples",
                "is without effect: the sweep over 'data.train_samples' replaces it; set "
                "sweep.data.train_samples");
  check_refused(samples, {whole("data")}, "--set data",
                "is partly without effect: the sweep over 'data.train_samples' replaces a part of it");
  check_refused(document_with(R"({"train.lr": [0.1, 0.2]})"), {"train.lr.router=0.3"},
                "--set train.lr.router", "is without effect: the sweep over 'train.lr' replaces it");
  check_refused(document_with(R"({"data.noise_std": {"log2range": [1, 4]}})"), {"data.noise_std=3"},
                "--set data.noise_std", "set sweep.data.noise_std");
  check_refused(document_with(R"({"zip": {"data.clusters": [8, 16], "data.dim": [2, 4]}})"), {"data.dim=3"},
                "--set data.dim", "the sweep over 'data.dim' replaces it; set sweep.zip.data.dim");
  check_refused(document_with(R"({"metrics": [["task"], ["load"]]})"), {"metrics.0=sparsity"},
                "--set metrics.0", "the sweep over 'metrics' replaces it");
}

TEST_CASE("override effects: steps and epochs take each other's place") {
  check_refused(document_with(R"({"train.steps": [10, 20]})"), {"train.epochs=2"}, "--set train.epochs",
                "is without effect: the sweep over 'train.steps' replaces it");
  check_refused(document_with(R"({"data.dim": [2]})", R"({"train.epochs": 3})"), {"train.steps=5"},
                "--set train.steps", "its 'train.epochs' replaces it");
  Json document = document_with(R"({"train.steps": [10, 20]})", R"({"train.epochs": 3})");
  check_refused(document, {}, "arms.other.train.epochs", "the sweep over 'train.steps' replaces it");
}

TEST_CASE("override effects: --set on what an arm sets, above or below it, is refused") {
  const Json router = document_with(R"({"data.dim": [2, 4]})");
  check_refused(router, {"model.router.trainable=false"}, "--set model.router.trainable",
                "is without effect in the arm 'other': its 'model.router.trainable' replaces it; set "
                "arms.<arm>.model.router.trainable for the arms that are meant");
  check_refused(
      router, {"model.router=linear"}, "--set model.router",
      "is partly without effect in the arm 'other': its 'model.router.trainable' replaces a part of it");
  check_refused(document_with(R"({"data.dim": [2]})", R"({"model.router": {"kind": "cosine"}})"),
                {"model.router.trainable=false"}, "--set model.router.trainable",
                "is without effect in the arm 'other': its 'model.router' replaces it");
  // Where the other settings stand does not matter.
  check_refused(router, {"train.steps=9", "arms.learned.train.steps=5"}, "--set train.steps",
                "in the arm 'learned'");
}

TEST_CASE("override effects: what is beside them, and the arms and the sweep themselves, are set") {
  const Json document = document_with(R"({"data.train_samples": [640, 1280]})");
  const auto configs = [&](const std::vector<std::string>& settings) {
    std::vector<Json> all;
    for (const Cell& cell : expand_scenario(document, "", settings).cells) {
      if (cell.seed == 0) all.push_back(config_json(*cell.options));
    }
    return all;
  };
  std::vector<Json> cells = configs({"data.test_samples=50", "model.router.init_scale=2", "train.epochs=3"});
  REQUIRE(cells.size() == 4);
  for (const Json& config : cells) {
    CHECK(config.at("data").at("test_samples") == 50);
    CHECK(config.at("model").at("router").at("init_scale") == 2);
    CHECK(config.at("train").at("epochs") == 3);
  }
  cells = configs({"sweep.data.train_samples=[5]", "arms.learned.model.router.trainable=false"});
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].at("data").at("train_samples") == 5);
  CHECK(cells[0].at("model").at("router").at("trainable") == false);
  cells = configs({"data.train_samples=7", "model.router.trainable=true", "sweep=null", "arms.other={}"});
  REQUIRE(cells.size() == 2);
  for (const Json& config : cells) {
    CHECK(config.at("data").at("train_samples") == 7);
    CHECK(config.at("model").at("router").at("trainable") == true);
  }
}

TEST_CASE("override effects: a profile may set what some arms set, but not what the sweep replaces") {
  Json document = document_with(R"({"data.train_samples": [640, 1280]})", R"({"train.steps": 70})");
  document["profiles"] = Json::parse(R"({"quick": {"train.steps": 30, "seeds.count": 1},
    "sized": {"data.train_samples": 640}, "resized": {"sweep.data.train_samples": [640, 1280]}})");
  const Scenario quick = expand_scenario(document, "quick", {});
  REQUIRE(quick.cells.size() == 4);
  CHECK(config_json(*quick.cells[0].options).at("train").at("steps") == 30);
  CHECK(config_json(*quick.cells[2].options).at("train").at("steps") == 70);
  check_refused(document, {}, "profiles.sized.data.train_samples",
                "is without effect: the sweep over 'data.train_samples' replaces it", "sized");
  CHECK(expand_scenario(document, "resized", {}).cells.size() == 20);
}

}  // namespace moelab::override_effects_test
