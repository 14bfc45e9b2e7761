#include "app/report/hints.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <span>

#include "sim/data/npy.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::hints_test {
namespace {

bool has(const std::vector<std::string>& hints, const std::string& text) {
  return std::any_of(hints.begin(), hints.end(),
                     [&](const std::string& hint) { return hint.find(text) != std::string::npos; });
}

std::vector<std::string> hints_of(const Json& scenario) {
  return scenario_hints(expand_scenario(scenario, "", {}));
}

TEST_CASE("a fixed temperature is told, and a learned one is not") {
  Json scenario = tiny();
  CHECK(hints_of(scenario).empty());
  scenario["arms"]["cosine"] = {{"model.router", Json::parse(R"({"kind": "cosine", "temperature": 3})")}};
  CHECK(has(hints_of(scenario), "arm 'cosine': the router's temperature 3 is fixed"));
  scenario["arms"]["cosine"]["model.router"]["temperature"] = Json::parse(R"({"start": 3, "learned": true})");
  CHECK(hints_of(scenario).empty());
}

TEST_CASE("few seeds at many points are told where claims are judged") {
  Json scenario = tiny();
  scenario["sweep"]["data.train_samples"] = {20, 30, 40, 50, 60, 70, 80, 90, 100};
  CHECK(hints_of(scenario).empty());
  scenario["claims"] =
      Json::parse(R"([{"id": "c", "op": "<", "left": {"arm": "learned", "metric": "test_nmse_top1"},
                                        "right": {"arm": "frozen", "metric": "test_nmse_top1"}}])");
  CHECK(has(hints_of(scenario), "2 seeds at 9 sweep points"));
  scenario["seeds"]["count"] = 6;
  CHECK(hints_of(scenario).empty());
}

TEST_CASE("constant targets and features of different scale are told, and why losses are missing") {
  const TemporaryFolder folder;
  constexpr std::int64_t kRows = 60;
  std::vector<double> x, y(kRows, 1.0);
  for (int i = 0; i < kRows; ++i) x.insert(x.end(), {std::sin(i), 1e4 * std::cos(3 * i)});
  const auto write = [&](const char* name, std::int64_t columns, const std::vector<double>& values) {
    std::ofstream(folder.path() / name, std::ios::binary)
        << npy_bytes({kRows, columns}, std::span<const double>(values));
    return (folder.path() / name).string();
  };
  Json scenario = tiny();
  scenario["data"] = {{"generator", "file"},
                      {"inputs", write("x.npy", 2, x)},
                      {"targets", write("y.npy", 1, y)},
                      {"test_samples", 10}};
  CHECK(has(hints_of(scenario), "data.targets: all targets are equal"));
  CHECK(has(hints_of(scenario), "data.inputs: column 1 varies by "));
  const Bench bench(scenario);
  const Answer answer = ask({"run", bench.file, "--out", bench.run, "--json"});
  CHECK(has(Json::parse(answer.out).at("hints").get<std::vector<std::string>>(),
            "cells have no test_nmse, because their test labels are all equal"));
}

TEST_CASE("equal arms and metrics that nothing moves are told after a run") {
  Json scenario = tiny();
  scenario["model"]["gating"] = {{"eval", {{"kind", "topk"}, {"k", 3}}}};
  scenario["arms"] =
      Json::parse(R"({"one": {}, "other": {"data.test_samples": 30}, "slow": {"train.lr": 0.001}})");
  scenario["claims"] =
      Json::parse(R"([{"id": "c", "op": "<", "left": {"arm": "one", "metric": "parameter_count"},
                                        "right": {"arm": "slow", "metric": "parameter_count"}}])");
  const Bench bench(scenario);
  const Answer answer = ask({"run", bench.file, "--out", bench.run, "--json"});
  REQUIRE(answer.status == 0);
  const auto hints = Json::parse(answer.out).at("hints").get<std::vector<std::string>>();
  CHECK(has(hints, "arms 'one' and 'other' have the same results to the last bit"));
  CHECK(!has(hints, "'slow'"));
  CHECK(has(hints, "parameter_count is "));
  CHECK(answer.err.find("moelab: note: arms 'one' and 'other'") != std::string::npos);
}

}  // namespace
}  // namespace moelab::hints_test
