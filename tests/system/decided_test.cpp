/// Runs that add seeds until claims are decided, and tuning: results, and what kills leave.

#include <doctest/doctest.h>

#include <set>

#include "tests/app/cli/tiny_run.h"
#include "tests/system/run_directory.h"

namespace moelab::decided_test {
namespace {

namespace fs = std::filesystem;

constexpr int kKills = 20;

/// One claim that a few pairs decide at a point, and one of equal sides, which only the cap ends.
Json claimed() {
  Json scenario = tiny();
  scenario["train"]["steps"] = 40;
  scenario["train"]["lr"] = 0.1;
  scenario["claims"] = Json::parse(R"([
    {"id": "learns", "left": {"arm": "learned", "metric": "train_loss", "step": "end"}, "op": "<",
     "right": {"arm": "learned", "metric": "train_loss", "step": "start"}, "at": [20]},
    {"id": "open", "left": {"arm": "learned", "metric": "test_nmse_soft"}, "op": "~", "tolerance": 1e-9,
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}, "at": [40]}])");
  return scenario;
}

/// The seeds that each arm has at each point.
std::map<std::string, int> seeds_of(const fs::path& run) {
  std::map<std::string, int> seeds;
  const Json plan = read_json_file(run / "plan.json");
  for (const Json& cell : plan.at("cells"))
    ++seeds[cell.at("arm").get<std::string>() + cell.at("point").at("data.train_samples").dump()];
  return seeds;
}

/// Runs the command to its end through kills at times that fall anywhere within it.
void run_through_kills(const std::vector<std::string>& words, const fs::path& log,
                       std::chrono::microseconds whole) {
  for (int kill = 0; kill < kKills; ++kill) {
    const pid_t process = start(words, log);
    std::this_thread::sleep_for(whole * (kill + 1) / (kKills + 1));
    ::kill(process, SIGKILL);
    wait_for(process);
  }
  CHECK(call(words, log) == 0);
}

std::chrono::microseconds time_of(const std::vector<std::string>& words, const fs::path& log) {
  const Clock::time_point begin = Clock::now();
  REQUIRE(call(words, log) == 0);
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

}  // namespace

TEST_CASE("program: seeds are added where claims are open, up to the cap, and verdicts say how") {
  const Bench bench(claimed());
  const fs::path log = bench.folder.path() / "log", run = bench.run;
  const std::vector<std::string> words = {"run",         bench.file, "--out", bench.run, "--until-decided",
                                          "--max-seeds", "9",        "--json"};
  REQUIRE(call(words, log) == 0);
  const Json claims = Json::parse(file_text(log)).at("claims");
  CHECK(claims[0].at("verdict") == "reproduced");
  CHECK(claims[0].at("points")[0].at("test") == "t mixture");
  CHECK(claims[0].at("points")[0].contains("median_interval"));
  CHECK(claims[1].at("points")[0].at("pairs") == 9);
  const std::map<std::string, int> seeds = seeds_of(run);
  CHECK(seeds.at("frozen20") == 2);  // no claim reads it
  CHECK(seeds.at("learned40") == 9);
  CHECK(seeds.at("frozen40") == 9);
  CHECK(seeds.at("learned20") >= 6);
  CHECK(call({"verify", bench.run}, log) == 0);
  // Plain runs and claims go on with what was decided.
  REQUIRE(call({"claims", bench.run, "--json"}, log) == 0);
  CHECK(Json::parse(file_text(log)) == claims);
  REQUIRE(call({"run", bench.file, "--out", bench.run}, log) == 0);
  CHECK(seeds_of(run) == seeds);
  CHECK(call({"run", bench.file, "--out", bench.run, "--seeds", "9..10"}, log) == 2);
  CHECK(call({"plan", bench.file, "--out", bench.run}, log) == 0);
}

TEST_CASE("program: a decided run through kills is the undisturbed one, to the bit") {
  const Bench bench(claimed());
  const fs::path log = bench.folder.path() / "log", killed = bench.folder.path() / "killed";
  const auto words = [&](const fs::path& run) -> std::vector<std::string> {
    return {"run", bench.file, "--out", run.string(), "--until-decided", "--max-seeds", "12"};
  };
  const std::chrono::microseconds whole = time_of(words(bench.run), log);
  run_through_kills(words(killed), log, whole);
  CHECK(exported(bench.folder, killed, true) == exported(bench.folder, bench.run, true));
  CHECK(file_text(killed / "claims.json") == file_text(fs::path(bench.run) / "claims.json"));
}

TEST_CASE("program: tune chooses for every arm on its own root seed, and through kills the same") {
  Json scenario = tiny();
  scenario["tune"] = {{"train.lr", {{"low", 1e-4}, {"high", 1.0}}}};
  scenario["train"]["steps"] = 40;
  const Bench bench(scenario);
  const fs::path log = bench.folder.path() / "log", killed = bench.folder.path() / "killed";
  const auto words = [&](const fs::path& run) -> std::vector<std::string> {
    return {"tune", bench.file, "--out", run.string(), "--budget", "30", "--threads", "2"};
  };
  const std::chrono::microseconds whole = time_of(words(bench.run), log);
  const Json tuned = read_json_file(fs::path(bench.run) / "tune.json");
  CHECK(tuned.at("root_seed") == 1000);
  CHECK(tuned.at("arms").at("learned").at("cells") == 30);
  CHECK(tuned.at("arms").at("frozen").at("cells") == 30);
  // The chosen one has the least score of those that went furthest.
  double least = 1e9;
  for (const Json& entry : tuned.at("trace")) {
    if (entry.at("arm") == "learned" && entry.at("rung") == 1)
      least = std::min(least, entry.at("score").get<double>());
  }
  CHECK(tuned.at("arms").at("learned").at("score") == least);
  CHECK(tuned.at("notes").get<std::string>().find("root seed 1000") != std::string::npos);
  CHECK(tuned.at("notes").get<std::string>().find("30 cells an arm") != std::string::npos);
  run_through_kills(words(killed), log, whole);
  Json same = read_json_file(killed / "tune.json");
  same["directory"] = tuned.at("directory");
  CHECK(same == tuned);
  CHECK(call({"verify", killed.string()}, log) == 0);
}

TEST_CASE("program: what tune and --until-decided refuse") {
  const Bench bench;
  const fs::path log = bench.folder.path() / "log";
  CHECK(call({"tune", bench.file}, log) == 2);
  CHECK(call({"run", bench.file, "--out", bench.run, "--until-decided"}, log) == 2);  // no claims
  CHECK(call({"run", bench.file, "--out", bench.run, "--hours", "1"}, log) == 2);
  Json scenario = tiny();
  scenario["tune"] = {{"train.lr", {{"low", 1e-4}, {"high", 1.0}}}};
  const Bench tuned(scenario);
  CHECK(call({"tune", tuned.file, "--out", tuned.run, "--arms", "leaned"}, log) == 2);
  CHECK(call({"tune", tuned.file, "--out", tuned.run, "--budget", "3"}, log) == 2);
  CHECK(call({"tune", tuned.file, "--out", tuned.run, "--set", "seeds.root=1000"}, log) == 2);
}

}  // namespace moelab::decided_test
