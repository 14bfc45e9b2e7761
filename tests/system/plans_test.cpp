/// Many processes that start on one folder, other settings at the same time, data that change between runs,
/// and a folder that cannot be written.

#include <doctest/doctest.h>
#include <unistd.h>

#include "app/store/run_folder.h"
#include "app/store/store.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/system/run_directory.h"

namespace moelab::system_plans_test {
namespace {

namespace fs = std::filesystem;

constexpr int kProcesses = 8;
constexpr int kRounds = 25;

Json small() {
  Json scenario = tiny();
  scenario["sweep"] = {{"data.train_samples", {20}}};
  return scenario;
}

Json answer_of(const std::vector<std::string>& words, const fs::path& log, int status = 0) {
  REQUIRE(call(words, log) == status);
  return Json::parse(file_text(log));
}

std::string message(const fs::path& log) {
  return file_text(log) + file_text(log.string() + ".err");
}

}  // namespace

TEST_CASE("program: eight processes that start on one fresh folder all work") {
  const Bench bench(small());
  const fs::path log = bench.folder.path() / "log";
  REQUIRE(call({"run", bench.file, "--out", bench.run}, log) == 0);
  const std::string table = exported(bench.folder, bench.run, false);
  for (int round = 0; round < kRounds; ++round) {
    const std::string run = (bench.folder.path() / std::to_string(round)).string();
    std::vector<pid_t> processes;
    for (int i = 0; i < kProcesses; ++i) {
      processes.push_back(start({"run", bench.file, "--out", run, "--threads", "1", "--share",
                                 std::to_string(i) + "/" + std::to_string(kProcesses)},
                                bench.folder.path() / std::to_string(1000 + i)));
    }
    for (int i = 0; i < kProcesses; ++i) {
      CHECK_MESSAGE(wait_for(processes[static_cast<std::size_t>(i)]) == 0,
                    message(bench.folder.path() / std::to_string(1000 + i)));
    }
    CHECK(exported(bench.folder, run, false) == table);
    CHECK(call({"verify", run}, log) == 0);
  }
}

TEST_CASE("program: runs of other settings in one folder at the same time answer about their own plans") {
  const Bench bench(small());
  const fs::path log = bench.folder.path() / "log", other = bench.folder.path() / "other";
  const auto words = [&](const std::string& run, const char* steps) -> std::vector<std::string> {
    return {"run",       bench.file,
            "--out",     (bench.folder.path() / run).string(),
            "--set",     std::string("train.steps=") + steps,
            "--threads", "1",
            "--json"};
  };
  const Json few = answer_of(words("few", "4"), log), many = answer_of(words("many", "400"), log);
  for (int round = 0; round < 5; ++round) {
    const std::string run = "both" + std::to_string(round);
    const pid_t first = start(words(run, "4"), log), second = start(words(run, "400"), other);
    CHECK_MESSAGE(wait_for(first) == 0, message(log));
    CHECK_MESSAGE(wait_for(second) == 0, message(other));
    for (const auto& [own, alone] : {std::pair(log, few), std::pair(other, many)}) {
      const Json answer = Json::parse(file_text(own));
      CHECK(answer.at("summary") == alone.at("summary"));
      CHECK(answer.at("plan") == alone.at("plan"));
      CHECK(answer.at("cells") == alone.at("cells"));
    }
    const fs::path folder = bench.folder.path() / run;
    CHECK(plan_ids(folder).size() == 2);
    CHECK(call({"verify", folder.string()}, log) == 0);
  }
}

TEST_CASE("program: verify names the data file that changed") {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, double shift) {
    std::vector<double> values(40);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7) + shift;
    const fs::path file = folder.path() / name;
    std::ofstream(file, std::ios::binary) << array_bytes({"", {20, 2}, values, {}});
    return file.string();
  };
  Json scenario = tiny();
  scenario["data"] = {{"generator", "file"},
                      {"inputs", write("X.npy", 0)},
                      {"targets", write("Y.npy", 1)},
                      {"train_samples", 10},
                      {"test_samples", 10}};
  scenario["metrics"] = {"task"};
  scenario.erase("sweep");
  const Bench bench(scenario);
  const fs::path log = folder.path() / "log";
  const int ran = call({"run", bench.file, "--out", bench.run}, log);
  REQUIRE_MESSAGE(ran == 0, message(log));
  CHECK(call({"verify", bench.run}, log) == 0);
  write("Y.npy", 2);
  CHECK(call({"verify", bench.run}, log) == 1);
  const std::string problems = file_text(log);
  CHECK(problems.find("4 of 4 cells have other ids now: ") != std::string::npos);
  CHECK(problems.find("Y.npy changed") != std::string::npos);
}

TEST_CASE("program: verbs that need not write answer on a folder that is read-only") {
  Json scenario = small();
  scenario["claims"] =
      Json::parse(R"([{"id": "learned_better", "left": {"arm": "learned", "metric": "test_loss_soft"},
    "op": "<", "right": {"arm": "frozen", "metric": "test_loss_soft"}}])");
  const Bench bench(scenario);
  const fs::path log = bench.folder.path() / "log";
  REQUIRE(call({"run", bench.file, "--out", bench.run}, log) == 0);
  const std::string table = exported(bench.folder, bench.run, false);
  fs::remove(fs::path(bench.run) / "claims.json");
  // A separate mount for root, whom permissions do not stop.
  const auto call_there = [&](const std::string& words) {
    const std::string script =
        "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && \"$0\" " + words;
    return wait_for(
        start_program({"unshare", "-m", "sh", "-c", script, program(), bench.run, bench.file}, log));
  };
  fs::perms before = fs::status(bench.run).permissions();
  const bool is_root = ::geteuid() == 0;
  if (is_root && call_there("--version") != 0) {
    MESSAGE("not tested: no mount can be made here");
    return;
  }
  if (!is_root) fs::permissions(bench.run, fs::perms::owner_read | fs::perms::owner_exec);
  const auto answer = [&](const std::string& verb) {
    if (is_root) return call_there(verb);
    return wait_for(start_program({"sh", "-c", "\"$0\" " + verb, program(), bench.run, bench.file}, log));
  };
  for (const char* verb : {"claims \"$1\"", "status \"$1\"", "compare \"$1\" \"$1\"",
                           "report \"$1\" --out \"${1%/*}/page.html\"", "run \"$2\" --out \"$1\""}) {
    CHECK_MESSAGE(answer(verb) == 0, verb, ": ", message(log));
  }
  CHECK(message(log).find("is read-only; claims.json was not written") != std::string::npos);
  CHECK(answer("export \"$1\"") == 0);
  CHECK(file_text(log) == table);
  // With work to do it fails.
  CHECK(answer("run \"$2\" --out \"$1\" --set train.steps=5") == 3);
  if (!is_root) fs::permissions(bench.run, before);
}

}  // namespace moelab::system_plans_test
