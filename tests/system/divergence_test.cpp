/// The built program on a run that diverges: its exit status and its hint.

#include <doctest/doctest.h>

#include "app/scenario/json.h"
#include "tests/system/run_directory.h"

namespace moelab::divergence_system_test {
namespace {

namespace fs = std::filesystem;

/// Two cells, at learning rates that are given for each arm; with a claim that a run refutes, too.
void write_two_rates(const fs::path& file, const std::string& one, const std::string& other) {
  std::ofstream(file) << R"({
    "name": "rates",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 6, "mean_std": 2,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 40, "test_samples": 50},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "mlp", "depth": 2, "width": 8}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 16, "steps": 200},
    "metrics": ["task"],
    "arms": {"one": {"train.lr": )"
                      << one << R"(}, "other": {"train.lr": )" << other << R"(}},
    "seeds": {"root": 1, "count": 3},
    "claims": [{"id": "no_loss", "op": "<", "left": {"arm": "one", "metric": "test_nmse_soft"},
                "right": {"value": 1e-9}}]
  })";
}

struct Divergence {
  TemporaryFolder folder;
  fs::path file = folder.path() / "rates.json", run = folder.path() / "run", log = folder.path() / "log";
  Divergence(const std::string& one, const std::string& other) { write_two_rates(file, one, other); }
  int status(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"run", file.string(), "--out", run.string()};
    words.insert(words.end(), more.begin(), more.end());
    return call(words, log);
  }
  std::string errors() const { return file_text(log.string() + ".err"); }
};

}  // namespace

TEST_CASE("divergence: of every cell is status 1, with a hint that names the largest rate") {
  const Divergence all("1000", R"({"expert": 1000, "router": 50000})");
  const std::string hint =
      "every cell diverged; try a learning rate ten times smaller (the largest here is train.lr.router = "
      "50000), then smaller inputs and targets (the labels' variance is ";
  REQUIRE(all.status() == 1);
  CHECK(all.errors().find("moelab: " + hint) != std::string::npos);
  CHECK(all.errors().find("init_scale") != std::string::npos);
  // The same of a run in which nothing is missing.
  CHECK(all.status({"--json"}) == 1);
  const Json answer = Json::parse(file_text(all.log));
  CHECK(answer.at("hint").get<std::string>().starts_with(hint));
  CHECK(answer.at("failed") == 0);
}

TEST_CASE("divergence: of some cells is a result") {
  const Divergence some("0.01", "1000");
  CHECK(some.status({"--json"}) == 0);
  CHECK_FALSE(Json::parse(file_text(some.log)).contains("hint"));
  CHECK(some.errors().find("diverged") == std::string::npos);
  REQUIRE(call({"status", some.run.string(), "--json"}, some.log) == 0);
  CHECK(Json::parse(file_text(some.log)).at("total").at("diverged") == 3);
}

TEST_CASE("divergence: a refuted claim is status 1 of claims, not of run") {
  const Divergence none("0.01", "0.01");
  CHECK(none.status() == 0);
  CHECK(file_text(none.log).find("no_loss: refuted") != std::string::npos);
  CHECK(call({"claims", none.run.string()}, none.log) == 1);
}

TEST_CASE("divergence: the help says which verb a refuted claim is a status of") {
  const TemporaryFolder folder;
  REQUIRE(call({"--help"}, folder.path() / "help") == 0);
  CHECK(file_text(folder.path() / "help").find("a claim is refuted (`claims`)") != std::string::npos);
}

}  // namespace moelab::divergence_system_test
