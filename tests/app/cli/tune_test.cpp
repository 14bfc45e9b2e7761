#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "app/run/session.h"
#include "app/scenario/json.h"
#include "app/scenario/scenario.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::tune_test {
namespace {

Json tuned(const Json& tune) {
  Json scenario = tiny();
  scenario["tune"] = tune;
  return scenario;
}

Answer ask_tune(const Bench& bench, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"tune", bench.file, "--out", bench.run, "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return ask(words);
}

/// Records what `runner` makes of the cells of the first rung that have this learning rate in the arm
/// "learned".
void record_before(const Bench& bench, double rate, const CellRunner& runner) {
  Json scenario = tiny();
  scenario["arms"] = {{"learned", {{"train.lr", rate}}}};
  scenario["seeds"] = {{"root", 1000}, {"count", 1}};
  run_session(expand_scenario(scenario, "", {}), {.directory = bench.run}, runner);
}

Json tune_file(const Bench& bench) {
  return read_json_file(std::filesystem::path(bench.run) / "tune.json");
}

}  // namespace

TEST_CASE("tune: a budget is not spent on equal candidates, and cells are those that differ") {
  const Bench bench(tuned({{"train.batch_size", {{"low", 1}, {"high", 3}, {"scale", "linear"}}}}));
  CHECK(ask_tune(bench, {"--budget", "40"}).status == 0);
  const Json answer = tune_file(bench);
  // Three values at two points: one seed of each, and the rung of one is none.
  CHECK(answer.at("arms").at("learned").at("cells") == 6);
  CHECK(answer.at("arms").at("frozen").at("cells") == 6);
  CHECK(answer.at("notes").get<std::string>().find("6 cells an arm: 3 candidates") != std::string::npos);
  std::set<Json> values;
  for (const Json& entry : answer.at("trace")) values.insert(entry.at("values").at("train.batch_size"));
  CHECK(values == std::set<Json>{1, 2, 3});
  CHECK(answer.at("trace").size() == 6);
}

TEST_CASE("tune: labels of arms do not hinder it, and a metric has its own direction") {
  Json scenario = tuned({{"train.batch_size", {{"low", 1}, {"high", 3}, {"scale", "linear"}}}});
  scenario["labels"] = {{"learned", "Learned"}};
  const Bench bench(scenario);
  CHECK(ask_tune(bench, {"--budget", "40", "--metric", "top1_cluster_ari"}).status == 0);
  CHECK(tune_file(bench).at("best") == "greatest");
}

TEST_CASE("tune: nothing is chosen where every candidate diverged") {
  const Bench bench(tuned({{"train.lr", {{"low", 1e200}, {"high", 1e300}}}}));
  const Answer answer = ask_tune(bench, {"--budget", "6"});
  CHECK(answer.status == 1);
  CHECK(answer.out.find("learned: no candidate (6 cells)") != std::string::npos);
  CHECK(answer.err.find("at the edge") == std::string::npos);
  const Json written = tune_file(bench);
  for (const char* arm : {"learned", "frozen"}) {
    CHECK(written.at("arms").at(arm).at("values").is_null());
    CHECK(written.at("arms").at(arm).at("at_edge").empty());
  }
  CHECK(written.at("notes").get<std::string>().find("learned: no candidate; frozen: no candidate") !=
        std::string::npos);
  const Answer json = ask_tune(bench, {"--budget", "6", "--json"});
  CHECK(json.status == 1);
  CHECK(Json::parse(json.out).at("arms").at("learned").at("values").is_null());
}

TEST_CASE("tune: a cell that failed is told by the status, and its candidate is not chosen") {
  const Bench bench(tuned({{"train.lr", {{"low", 0.01}, {"high", 0.1}}}}));
  record_before(bench, 0.1,
                [](const Cell&, const CellProgress&) -> CellResult { throw std::runtime_error("broken"); });
  CHECK(ask_tune(bench, {"--budget", "6", "--arms", "learned"}).status == 1);
  CHECK(tune_file(bench).at("arms").at("learned").at("values").at("train.lr") == 0.0316);
}

TEST_CASE("tune: a positive metric of 0 is the best there is, and the worst where the greatest is the best") {
  const Bench bench(tuned({{"train.lr", {{"low", 0.01}, {"high", 0.1}}}}));
  record_before(bench, 0.0316, [](const Cell&, const CellProgress&) {
    CellResult result;
    result.metrics = {{"test_nmse_top1", 0.0}};
    return result;
  });
  const auto chosen = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--budget", "6", "--arms", "learned", "--metric", "test_nmse_top1"};
    words.insert(words.end(), more.begin(), more.end());
    CHECK(ask_tune(bench, words).status == 0);
    return tune_file(bench).at("arms").at("learned").at("values").at("train.lr");
  };
  CHECK(chosen({}) == 0.0316);
  CHECK(chosen({"--maximize"}) != 0.0316);
}

TEST_CASE("tune: arms are named once each") {
  const Bench bench(tuned({{"train.lr", {{"low", 0.01}, {"high", 0.1}}}}));
  for (const char* arms : {"learned,learned", "learned,", ",learned", "learned,,frozen", ""}) {
    CAPTURE(std::string(arms));
    const Answer answer = ask_tune(bench, {"--budget", "6", "--arms", arms});
    CHECK(answer.status == 2);
    CHECK(answer.err.find("--arms: got '" + std::string(arms) + "', needs") != std::string::npos);
    CHECK(!std::filesystem::exists(bench.run));
  }
  CHECK(ask_tune(bench, {"--budget", "6", "--arms", "frozen,learned"}).status == 0);
  CHECK(tune_file(bench).at("arms").size() == 2);
}

TEST_CASE(
    "tune: the choice is told by the mean of its metric, and no rung by the plan that the one before "
    "showed") {
  const Bench bench(tuned({{"train.lr", {{"low", 0.01}, {"high", 0.1}}}}));
  const Answer answer = ask_tune(bench, {"--budget", "30", "--arms", "learned"});
  REQUIRE(answer.status == 0);
  CHECK(answer.err.find("showed plan") == std::string::npos);
  const Json arm = tune_file(bench).at("arms").at("learned");
  const double mean = arm.at("mean").get<double>();
  CHECK(mean == doctest::Approx(std::exp(arm.at("score").get<double>())));
  CHECK(answer.out.find(fmt::format("(test_nmse_top1 {:.4g}, ", mean)) != std::string::npos);
  CHECK(answer.out.find("score") == std::string::npos);
  // Nor does the same command again; the program says that tuning replaces a run.
  CHECK(ask_tune(bench, {"--budget", "30", "--arms", "learned"}).err.find("showed plan") ==
        std::string::npos);
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--threads", "1"}).status == 0);
  CHECK(ask_tune(bench, {"--budget", "30", "--arms", "learned"}).err.find("showed plan") !=
        std::string::npos);
  // The greatest of a metric that may be negative has its sign.
  REQUIRE(ask_tune(bench, {"--budget", "6", "--metric", "cluster_entropy", "--maximize"}).status == 0);
  CHECK(tune_file(bench).at("arms").at("learned").at("mean").get<double>() ==
        -tune_file(bench).at("arms").at("learned").at("score").get<double>());
}

TEST_CASE("tune: a choice at the end of what was tried is told, though it is not at the end of its range") {
  const Bench bench(tuned({{"train.lr", {{"low", 0.001}, {"high", 0.1}}},
                           {"train.steps", {{"low", 20}, {"high", 60}, {"scale", "linear"}}}}));
  const Answer answer = ask_tune(bench, {"--budget", "6", "--arms", "learned"});
  REQUIRE(answer.status == 0);
  const Json written = tune_file(bench);
  std::vector<int> steps;
  for (const Json& entry : written.at("trace")) steps.push_back(entry.at("values").at("train.steps"));
  const int least = *std::min_element(steps.begin(), steps.end()),
            most = *std::max_element(steps.begin(), steps.end());
  const int chosen = written.at("arms").at("learned").at("values").at("train.steps");
  const bool is_end = chosen == least || chosen == most;
  const Json edges = written.at("arms").at("learned").at("at_edge");
  CHECK(is_end == (std::find(edges.begin(), edges.end(), Json("train.steps")) != edges.end()));
  if (is_end && chosen > 22 && chosen < 58) {
    CHECK(answer.err.find(fmt::format("the best train.steps, {} of [20, 60], is the {} tried", chosen,
                                      chosen == least ? "least" : "largest")) != std::string::npos);
  }
}

TEST_CASE("tune --write writes a scenario that is ready to run, with every arm at its best") {
  Json scenario = tuned({{"train.lr", {{"low", 0.01}, {"high", 0.1}}}});
  scenario["arms"]["scale_{s}"] =
      Json::parse(R"({"for": {"s": [1, 2]}, "set": {"model.router.init_scale": "{s}"}})");
  scenario["notes"] = "One note.";
  const Bench bench(scenario);
  const std::string written = (bench.folder.path() / "best.json").string();
  const Answer answer = ask_tune(bench, {"--budget", "6", "--write", written, "--metric", "test_loss_soft"});
  CHECK(answer.status == 0);
  CHECK(answer.err.find("no \"objective\"") == std::string::npos);  // --metric says which
  const Json best = read_json_file(written), told = tune_file(bench);
  CHECK(best.at("objective") == Json({{"metric", "test_loss_soft"}, {"direction", "min"}}));
  REQUIRE(best.at("arms").size() == 4);
  for (const auto& [arm, overrides] : best.at("arms").items())
    CHECK(overrides.at("train.lr") == told.at("arms").at(arm).at("values").at("train.lr"));
  CHECK(best.at("arms").at("scale_2").at("model.router.init_scale") == 2);
  REQUIRE(best.at("notes").size() == 2);
  CHECK(best.at("notes")[1] == told.at("notes"));
  CHECK(ask({"validate", written}).status == 0);
  scenario["profiles"] = {{"short", {{"train.steps", 15}}}};
  std::ofstream(bench.file) << scenario.dump();
  CHECK(ask_tune(bench, {"--budget", "6", "--write", written, "--profile", "short"})
            .out.find("every arm at its best, with the values of the profile short: ") != std::string::npos);
  const Json shorter = read_json_file(written);
  CHECK(shorter.at("train").at("steps") == 15);
  CHECK(shorter.at("notes")[1].get<std::string>().ends_with(
      " Under the profile short, whose values this file has."));
  CHECK(ask_tune(bench, {"--budget", "6", "--write", bench.file}).err.find("is the scenario itself") !=
        std::string::npos);
  CHECK(ask_tune(bench, {"--budget", "6"}).err.find("took test_nmse_top1, the default (the least is best)") !=
        std::string::npos);
}

}  // namespace moelab::tune_test
