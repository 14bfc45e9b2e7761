/// The built program from outside: processes, signals, files. Its path is in MOELAB_PROGRAM.

#include <doctest/doctest.h>

#include <algorithm>

#include "app/run/scheduler.h"
#include "tests/system/run_directory.h"

namespace moelab::program_test {
namespace {

namespace fs = std::filesystem;

/// The contract: two seconds after the signal the program has ended. The rest is for a loaded machine.
constexpr std::chrono::seconds kInterruptLimit{4};

/// Sixteen cells that take a few tenths of a second each.
void write_scenario(const fs::path& file, int steps) {
  std::ofstream(file) << R"({
    "name": "tiny",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 6, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 50},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "mlp", "depth": 2, "width": 8}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 16, "steps": )"
                      << steps << R"(},
    "metrics": ["task", "sparsity"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false}},
    "sweep": {"data.train_samples": [20, 40]},
    "seeds": {"root": 1, "count": 4},
    "save": ["routing"]
  })";
}

/// One cell of minutes that looks for signals seldom: it measures overlap and silhouette on many rows.
void write_long_cell(const fs::path& file) {
  std::ofstream(file) << R"({
    "name": "long",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 64, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 60000},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "constant"}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 16, "steps": 2},
    "metrics": ["task", {"kind": "overlap"}],
    "seeds": {"root": 1, "count": 2}
  })";
}

/// Starts the long scenario and waits until its first cell runs.
pid_t start_long_cell(const TemporaryFolder& folder) {
  write_long_cell(folder.path() / "long.json");
  const fs::path run = folder.path() / "run";
  const pid_t process =
      start({"run", (folder.path() / "long.json").string(), "--out", run.string(), "--threads", "1"},
            folder.path() / "log");
  const Clock::time_point limit = Clock::now() + kPatience;
  while (!fs::exists(run / "provenance.json") && Clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return process;
}

}  // namespace

TEST_CASE("program: the export is the same to the byte for one thread and two") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json";
  write_scenario(file, 50);
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  REQUIRE(call({"run", file.string(), "--out", one.string(), "--threads", "1"}, folder.path() / "log") == 0);
  REQUIRE(call({"run", file.string(), "--out", two.string(), "--threads", "2"}, folder.path() / "log") == 0);
  const std::string table = exported(folder, one, false);
  CHECK(std::count(table.begin(), table.end(), '\n') == 17);
  CHECK(table == exported(folder, two, false));
  CHECK(exported(folder, one, true) == exported(folder, two, true));
}

TEST_CASE("program: interrupted in time, resumed, and the same export to the byte") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json";
  write_scenario(file, 40000);
  const fs::path whole = folder.path() / "whole", parts = folder.path() / "parts";
  const std::vector<std::string> command = {"run", file.string(), "--out", parts.string(), "--threads", "2"};
  const pid_t process = start(command, folder.path() / "log");
  const Clock::time_point limit = Clock::now() + kPatience;
  while (recorded_lines(parts) < 2 && Clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const Clock::time_point signalled = Clock::now();
  ::kill(process, SIGINT);
  CHECK(wait_for(process) == 130);
  CHECK(Clock::now() - signalled < kInterruptLimit);
  CHECK(file_text(folder.path() / "log.err").find("the same command resumes") != std::string::npos);
  const std::ptrdiff_t kept = recorded_lines(parts);
  CHECK(kept >= 2);
  CHECK(kept < 16);

  REQUIRE(call(command, folder.path() / "log") == 0);
  CHECK(recorded_lines(parts) == 16);
  REQUIRE(call({"run", file.string(), "--out", whole.string(), "--threads", "1"}, folder.path() / "log") ==
          0);
  CHECK(exported(folder, parts, false) == exported(folder, whole, false));
  CHECK(exported(folder, parts, true) == exported(folder, whole, true));
}

TEST_CASE("program: SIGTERM ends a cell that does not look for signals, in time") {
  const TemporaryFolder folder;
  const pid_t process = start_long_cell(folder);
  const Clock::time_point signalled = Clock::now();
  ::kill(process, SIGTERM);
  CHECK(wait_for(process) == 130);
  CHECK(Clock::now() - signalled < kInterruptLimit);
  CHECK(recorded_lines(folder.path() / "run") == 0);
  CHECK(file_text(folder.path() / "log.err").find("the same command resumes") != std::string::npos);
}

TEST_CASE("program: a second signal ends it at once") {
  const TemporaryFolder folder;
  const pid_t process = start_long_cell(folder);
  const Clock::time_point signalled = Clock::now();
  ::kill(process, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(process, SIGINT);
  CHECK(wait_for(process) == 130);
  // Before the cell's time of grace is over, which the first signal alone would have waited for.
  CHECK(Clock::now() - signalled < std::chrono::duration<double>(kGraceSeconds));
  CHECK(file_text(folder.path() / "log.err").empty());
}

TEST_CASE("program: a killed process leaves a run that resumes") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json";
  write_scenario(file, 40000);
  const fs::path run = folder.path() / "run";
  const std::vector<std::string> command = {"run", file.string(), "--out", run.string(), "--threads", "2"};
  const pid_t process = start(command, folder.path() / "log");
  const Clock::time_point limit = Clock::now() + kPatience;
  while (recorded_lines(run) < 1 && Clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(process, SIGKILL);
  CHECK(wait_for(process) == -SIGKILL);
  CHECK(call(command, folder.path() / "log") == 0);
  CHECK(recorded_lines(run) == 16);
}

TEST_CASE("program: bad input ends with status 2 and leaves nothing") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "bad.json";
  const std::vector<std::string> texts = {"", "{", "{\"name\": \"x\", \"name\": \"y\"}", "{\"nmae\": \"x\"}",
                                          "[]"};
  for (const std::string& text : texts) {
    std::ofstream(file) << text;
    CHECK(call({"run", file.string(), "--out", (folder.path() / "run").string()}, folder.path() / "log") ==
          2);
    CHECK(file_text(folder.path() / "log").empty());
    CHECK(file_text(folder.path() / "log.err").starts_with("moelab: error: "));
    CHECK_FALSE(fs::exists(folder.path() / "run"));
  }
}

TEST_CASE("program: a folder with other files is refused and left as it is") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json";
  write_scenario(file, 10);
  CHECK(call({"run", file.string(), "--out", folder.path().string()}, folder.path() / "log") == 2);
  CHECK_FALSE(fs::exists(folder.path() / "plan.json"));
  CHECK_FALSE(fs::exists(folder.path() / "journal"));
}

}  // namespace moelab::program_test
