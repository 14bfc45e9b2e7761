/// Runs that are killed again and again, and several processes on one run directory.

#include "app/run/store.h"

#include <doctest/doctest.h>

#include "sim/base/random.h"
#include "tests/system/run_directory.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

constexpr int kKills = 100;

/// Cells of a few milliseconds, four arms and points for each seed.
void write_tiny_cells(const fs::path& file, int seeds) {
  std::ofstream(file) << R"({
    "name": "tiny",
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 30},
    "model": {"experts": 3, "router": {"kind": "linear"}, "expert": {"kind": "constant"}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 10, "steps": 4},
    "metrics": ["task"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false}},
    "sweep": {"data.train_samples": [20, 40]},
    "save": ["routing"],
    "seeds": {"root": 1, "count": )"
                      << seeds << "}}";
}

}  // namespace

TEST_CASE("program: killed a hundred times, it loses no recorded cell and comes to the same export") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json", log = folder.path() / "log";
  write_tiny_cells(file, 250);
  const fs::path whole = folder.path() / "whole", parts = folder.path() / "parts";
  const std::vector<std::string> command = {"run", file.string(), "--out", parts.string(), "--threads", "2"};
  Engine engine = Seeds{1, 0}.stream(Purpose::shuffles);
  Records before;
  int killed = 0, grown = 0;
  // A machine that is too loaded for a first record in time is given longer.
  double longest = 0.15;
  for (int i = 0; i < kKills; ++i) {
    const pid_t process = start(command, log);
    std::this_thread::sleep_for(std::chrono::duration<double>(longest * draw_uniform(engine)));
    ::kill(process, SIGKILL);
    const int status = wait_for(process);
    killed += status == -SIGKILL ? 1 : 0;
    CHECK((status == -SIGKILL || status == 0));
    const Records after = read_records(parts);
    for (const auto& [id, record] : before) {
      const auto kept = after.find(id);
      REQUIRE(kept != after.end());
      CHECK(same_numbers(kept->second, record));
    }
    if (after.size() > before.size()) {
      ++grown;
    } else if (longest < 2) {
      longest *= 1.1;
    }
    before = after;
  }
  MESSAGE(killed, " killed, ", grown, " of them with new cells, ", before.size(), " cells recorded");
  CHECK(killed > kKills / 2);
  CHECK(grown > kKills / 10);
  REQUIRE(call(command, log) == 0);
  REQUIRE(call({"run", file.string(), "--out", whole.string(), "--threads", "1"}, log) == 0);
  CHECK(exported(folder, parts, false) == exported(folder, whole, false));
  CHECK(exported(folder, parts, true) == exported(folder, whole, true));
  CHECK(call({"verify", parts.string()}, log) == 0);
}

TEST_CASE("program: two processes at once, and eight threads, come to the export of one thread") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json", log = folder.path() / "log";
  write_tiny_cells(file, 10);
  const auto command = [&](const char* run, const char* threads) -> std::vector<std::string> {
    return {"run", file.string(), "--out", (folder.path() / run).string(), "--threads", threads};
  };
  REQUIRE(call(command("one", "1"), log) == 0);
  REQUIRE(call(command("eight", "8"), log) == 0);
  const pid_t first = start(command("shared", "2"), folder.path() / "first");
  const pid_t second = start(command("shared", "1"), folder.path() / "second");
  CHECK(wait_for(first) == 0);
  CHECK(wait_for(second) == 0);
  const fs::path one = folder.path() / "one";
  for (const char* other : {"eight", "shared"}) {
    CHECK(exported(folder, folder.path() / other, false) == exported(folder, one, false));
    CHECK(exported(folder, folder.path() / other, true) == exported(folder, one, true));
    CHECK(call({"verify", (folder.path() / other).string()}, log) == 0);
  }
  // Both processes are in the provenance, whoever wrote it last.
  CHECK(read_json_file(folder.path() / "shared/provenance.json").at("earlier").size() == 1);
}

}  // namespace moelab
