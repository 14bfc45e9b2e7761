/// `moelab agreement`: which routings it compares. Its numbers equal the numbers of
/// `analyze`.

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::agreement_verb_test {
namespace {

Json saving() {
  Json scenario = tiny();
  scenario["save"] = {"routing"};
  return scenario;
}

Json agreements(std::vector<std::string> words) {
  words.insert(words.begin(), "agreement");
  words.push_back("--json");
  const Answer answer = ask(words);
  REQUIRE_MESSAGE(answer.status == 0, answer.err);
  return Json::parse(answer.out).at("agreements");
}

std::string probabilities(const Bench& bench, const std::string& arm, int samples, int seed) {
  const Json rows = Json::parse(ask({"export", bench.run, "--json"}).out).at("rows");
  for (const Json& row : rows) {
    if (is_text(row[1], arm) && row[2] == seed && row[3] == samples) {
      return (std::filesystem::path(bench.run) / "cells" / row[0].get<std::string>() / "test_probs.npy")
          .string();
    }
  }
  FAIL("no cell");
  return "";
}

}  // namespace

TEST_CASE("agreement: arms at a point, and points of an arm, over the seeds that they share") {
  const Bench bench(saving());
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const Json all = agreements({bench.run});
  REQUIRE(all.size() == 4);
  int of_arms = 0;
  for (const Json& each : all) {
    CHECK(each.at("pairs") == 2);
    CHECK(each.at("between") == "places");
    const bool same_arm = each.at("left").at("arm") == each.at("right").at("arm");
    const bool same_point = each.at("left").at("at") == each.at("right").at("at");
    CHECK(same_arm != same_point);
    if (same_arm && each.at("left").at("arm") == "frozen") {
      // A frozen router is the same whatever the training set.
      CHECK(each.at("routing_ari").at("mean") == 1);
      CHECK(each.at("routing_divergence").at("mean") == 0);
    }
    if (same_arm) continue;
    ++of_arms;
    for (const std::string name : {"routing_ari", "routing_nmi", "routing_divergence"}) {
      double sum = 0;
      for (const int seed : {0, 1}) {
        const int samples = each.at("left").at("at").at("data.train_samples");
        const Json analyzed =
            Json::parse(ask({"analyze", "--probs", probabilities(bench, "frozen", samples, seed),
                             "--previous-probs", probabilities(bench, "learned", samples, seed), "--json"})
                            .out);
        sum += analyzed.at("metrics").at(name).get<double>();
      }
      CHECK(std::abs(each.at(name).at("mean").get<double>() - sum / 2) < 1e-12);
      CHECK(each.at(name).at("interval").is_array());
    }
  }
  CHECK(of_arms == 2);
  CHECK(ask({"agreement", bench.run}).out.find("learned | frozen, data.train_samples = 40") !=
        std::string::npos);
}

TEST_CASE("agreement: runs are paired where their test rows are equal, and refused where none are") {
  Json scenario = saving();
  scenario.erase("arms");
  scenario.erase("sweep");
  const Bench one(scenario);
  REQUIRE(ask({"run", one.file, "--out", one.run}).status == 0);
  const Answer alone = ask({"agreement", one.run});
  CHECK(alone.status == 2);
  CHECK(alone.err.find("\"save\": [\"routing\"]") != std::string::npos);
  scenario["train"]["lr"] = 0.1;
  const Bench other(scenario);
  REQUIRE(ask({"run", other.file, "--out", other.run}).status == 0);
  const Json both = agreements({one.run, other.run});
  REQUIRE(both.size() == 1);
  CHECK(both[0].at("left").at("run") == one.run);
  CHECK(both[0].at("right").at("run") == other.run);
  CHECK(both[0].at("pairs") == 2);
  scenario["data"]["test_samples"] = 31;
  const Bench larger(scenario);
  REQUIRE(ask({"run", larger.file, "--out", larger.run}).status == 0);
  CHECK(ask({"agreement", one.run, larger.run}).status == 2);
}

TEST_CASE("agreement: a run is given once, whatever it is called") {
  const Bench bench(saving());
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string again = bench.run + "/../run",
                    id = Json::parse(ask({"status", bench.run, "--json"}).out).at("plan");
  for (const std::string& other : {bench.run, again, bench.run + "@" + id}) {
    const Answer answer = ask({"agreement", bench.run, other});
    CHECK(answer.status == 2);
    CHECK_MESSAGE(answer.err.find("DIR: '" + other + "' is the plan ") != std::string::npos, answer.err);
  }
}

}  // namespace moelab::agreement_verb_test
