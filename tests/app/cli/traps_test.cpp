/// Traps of the scenario language that a user would step into, through the program.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::traps_test {
namespace {

/// A study whose first claim is about balance, and whose second is about the loss.
Json balance_first() {
  Json scenario = tiny_with_claims(R"([
    {"id": "balanced", "op": "<", "tuned": true, "at": "last",
     "left": {"arm": "learned", "metric": "expert_load_max_violation"},
     "right": {"arm": "frozen", "metric": "expert_load_max_violation"}},
    {"id": "lower", "op": "<", "tuned": true, "at": "last",
     "left": {"arm": "learned", "metric": "test_loss_soft"},
     "right": {"arm": "frozen", "metric": "test_loss_soft"}},
    {"id": "plain", "op": "<", "at": "last",
     "left": {"arm": "learned", "metric": "expert_load_max_violation"},
     "right": {"arm": "frozen", "metric": "expert_load_max_violation"}}])");
  scenario["metrics"] = {"task", "load"};
  scenario["tune"] = {{"train.lr", {{"low", 0.01}, {"high", 0.1}}}};
  return scenario;
}

std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', at) + 1, end = std::min(text.find('\n', at), text.size());
  return text.substr(begin, end - begin);
}

}  // namespace

TEST_CASE(
    "a study whose first claim is about balance is tuned by the objective, which tune names with its "
    "reason") {
  const auto tuned = [](const Json& scenario, const std::vector<std::string>& more) {
    const Bench bench(scenario);
    std::vector<std::string> words = {"tune",     bench.file, "--out",     bench.run,
                                      "--budget", "6",        "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    Answer answer = ask(words);
    REQUIRE(answer.status == 0);
    answer.out = read_json_file(std::filesystem::path(bench.run) / "tune.json").dump();
    return answer;
  };
  const auto says = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  Json scenario = balance_first();
  for (Json& claim : scenario["claims"]) claim.erase("tuned");
  const Answer by_default = tuned(scenario, {});
  CHECK(says(by_default.err, "took test_nmse_top1, the default (the least is best)"));
  CHECK(says(by_default.out, "test_nmse_top1"));
  CHECK_FALSE(says(by_default.err + by_default.out, "expert_load_max_violation"));
  scenario["figures"] = Json::parse(R"([{"id": "f", "x": "data.train_samples", "y": "test_loss_soft"}])");
  CHECK(says(tuned(scenario, {}).err, "took test_loss_soft, the first figure's metric"));
  scenario["objective"] = "expert_load_max_violation";
  const Answer asked = tuned(scenario, {});
  CHECK_FALSE(says(asked.err, "objective"));
  CHECK(says(asked.out, "expert_load_max_violation"));
  CHECK(says(tuned(scenario, {"--metric", "train_loss"}).out, "train_loss"));
}

TEST_CASE("claims on tuned arms name the metric of the tuning, and say when they judge something else") {
  Json scenario = balance_first();
  scenario["objective"] = "test_loss_soft";
  for (const char* arm : {"learned", "frozen"}) scenario["arms"][arm]["train.lr"] = 0.02;
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string text = ask({"claims", bench.run}).out;
  const std::string other = ", each arm at its best by test_loss_soft, which is not what the claim judges";
  const std::string judged = "ours: learned expert_load_max_violation < frozen expert_load_max_violation";
  CHECK(line_with(text, judged).ends_with(judged + other));
  CHECK(line_with(text, "ours: learned test_loss_soft")
            .ends_with("test_loss_soft, each arm at its best by test_loss_soft"));
  const std::size_t plain = text.find("plain:");
  REQUIRE(plain != std::string::npos);
  CHECK(line_with(text.substr(plain), "ours:").ends_with(judged));
  const Json claims = Json::parse(ask({"claims", bench.run, "--json"}).out);
  CHECK(claims.at(0).at("tuned_by") == "test_loss_soft");
  CHECK(claims.at(1).at("tuned_by") == "test_loss_soft");
  CHECK_FALSE(claims.at(2).contains("tuned_by"));
}

TEST_CASE(
    "std_per_level takes what its name promises: a number for all levels, or a list with one for each") {
  const auto scenario = [](const Json& stds) {
    Json tree = tiny();
    tree["data"].erase("clusters");
    tree["data"].erase("mean_std");
    tree["data"]["hierarchy"] = {{"depth", 2}, {"branching", 2}, {"std_per_level", stds}};
    return tree;
  };
  const auto losses = [&](const Json& stds) {
    const Bench bench(scenario(stds));
    REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
    std::set<Json> found;
    const Json cells = Json::parse(ask({"export", bench.run, "--json"}).out);
    const Json& columns = cells.at("columns");
    const auto loss = std::find(columns.begin(), columns.end(), "test_loss_soft") - columns.begin();
    for (const Json& row : cells.at("rows")) found.insert(row.at(static_cast<std::size_t>(loss)));
    return found;
  };
  const std::set<Json> number = losses(2);
  CHECK(losses({2, 2}) == number);
  CHECK(losses({2, 0.5}) != number);
  const auto refusal = [&](const Json& stds) {
    const Bench bench(scenario(stds));
    const Answer answer = ask({"validate", bench.file});
    CHECK(answer.status == 2);
    return answer.err;
  };
  CHECK(refusal({1, 2, 3}).find(
            "data.hierarchy.std_per_level: got 3 numbers, needs one number, or one for each of "
            "the 2 levels") != std::string::npos);
  CHECK(refusal("2").find("data.hierarchy.std_per_level: got \"2\", needs ") != std::string::npos);
  CHECK(refusal({1, -1}).find("data.hierarchy.std_per_level[1]: got -1, needs ") != std::string::npos);
}

TEST_CASE("a misspelt name does not hide the mistakes beside it") {
  Json tree = tiny_with_claims(R"([{"id": "below", "op": "=<",
    "left": {"arm": "learned", "metric": "test_loss_sof"}, "right": {"arm": "frozen", "metric": "test_loss_soft"}}])");
  tree["data"]["generator"] = "gaussian_mixtures";
  tree["data"]["cluster"] = 4;
  tree["data"]["dim"] = -3;
  tree["train"]["learning_rate"] = "fast";  // the error of its corrected name would have no place
  const Bench bench(tree);
  const Answer answer = ask({"validate", bench.file, "--json"});
  CHECK(answer.status == 2);
  std::set<std::string> places;
  const Json told = Json::parse(answer.out);
  for (const Json& error : told.at("errors")) places.insert(error.at("path").get<std::string>());
  CHECK(Json(places) == Json({"claims[0].left.metric", "claims[0].op", "data.cluster", "data.dim",
                              "data.generator", "train.learning_rate"}));
}

TEST_CASE("a scenario with mistakes in every section gets one answer, with a place for each") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "bad.json").string();
  std::ofstream(file) << R"({
  "name": "twelve places",
  "data": {
    "generator": "gaussian_mixture", "clusters": 4, "dim": 6, "dim": 8,
    "target": {"kind": "constant", "dim": 2}, "train_samples": "many", "test_samples": 60
  },
  "model": {
    "experts": 4, "router": {"kind": "cosine", "temperature": -1},
    "expert": {"kind": "mlp", "depth": 2, "widht": 4},
    "gating": {"train": "soft", "eval": "top1"}
  },
  "train": {"optimizer": "adm", "lr": 0.01, "batch_size": 20, "steps": 30, "record_every": 0},
  "objective": "accuracy_top1",
  "metrics": ["task", "sparsity", "loads"],
  "arms": {"learned": {}, "frozen": {"model.router.trainable": "no"}},
  "sweep": {"data.train_samples": [320, 640], "model.expert": [4, 8]},
  "seeds": {"root": 1, "count": 0},
  "save": ["weight"],
  "claims": [
    {"id": "a", "op": "<", "at": "lst", "left": {"arm": "learned", "metric": "test_nmse_top1"},
     "right": {"arm": "frozen", "metric": "test_nmse_top1"}},
    {"id": "b", "op": "decreases", "arm": "learnt", "metric": "test_nmse_top1", "along": "data.train_samples"}
  ],
  "figures": [
    {"id": "x", "kind": "heat_map", "x": "data.train_samples", "value": "test_nmse_top1"},
    {"id": "y", "kind": "claim", "claim": "z"},
    {"id": "e", "kind": "embeding"}
  ]
})";
  const Answer answer = ask({"validate", file});
  CHECK(answer.status == 2);
  for (const char* place :
       {"name: got \"twelve places\"", "bad.json:4:63: duplicate key 'dim'",
        "data.train_samples: got \"many\"", "model.router.temperature: got -1",
        "model.expert.widht: unknown key", "train.optimizer: unknown optimizer 'adm'",
        "train.record_every: got 0", "objective: unknown", "metrics[2]: unknown",
        "arms.frozen.model.router.trainable: got", "sweep.model.expert[0]: got 4", "seeds.count: got 0",
        "save[0]: unknown kind 'weight'", "claims[0].at: unknown", "claims[1].arm: unknown arm 'learnt'",
        "figures[2].kind: unknown kind 'embeding'"}) {
    CAPTURE(place);
    const std::string line = line_with(answer.err, place);
    CHECK_MESSAGE(!line.empty(), answer.err);
    CHECK(std::regex_search(line, std::regex("bad\\.json:[0-9]+:[0-9]+")));
  }
}

}  // namespace moelab::traps_test
