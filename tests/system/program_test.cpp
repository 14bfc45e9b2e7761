/// The built program from outside: processes, signals, files. Its path is in MOELAB_PROGRAM.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/app/run/test_scenario.h"
#include "tests/system/process.h"

namespace moelab {
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

std::ptrdiff_t recorded_lines(const fs::path& run) {
  std::ptrdiff_t lines = 0;
  if (!fs::exists(run / "journal")) return lines;
  for (const fs::directory_entry& file : fs::directory_iterator(run / "journal")) {
    const std::string text = file_text(file.path());
    lines += std::count(text.begin(), text.end(), '\n');
  }
  return lines;
}

std::string exported(const TemporaryFolder& folder, const fs::path& run, bool trace) {
  std::vector<std::string> words = {"export", run.string()};
  if (trace) words.push_back("--trace");
  REQUIRE(call(words, folder.path() / "export.csv") == 0);
  return file_text(folder.path() / "export.csv");
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

}  // namespace moelab
