/// Runs that are killed again and again, and several processes on one run directory.

#include "app/run/store.h"

#include <doctest/doctest.h>

#include "sim/base/random.h"
#include "tests/system/run_directory.h"

namespace moelab::store_test {
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
    "save": ["weights"],
    "seeds": {"root": 1, "count": )"
                      << seeds << "}}";
}

}  // namespace

TEST_CASE("program: killed a hundred times, it loses no recorded cell and comes to the same export") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "tiny.json", log = folder.path() / "log";
  write_tiny_cells(file, 15);
  const fs::path whole = folder.path() / "whole";
  REQUIRE(call({"run", file.string(), "--out", whole.string(), "--threads", "1"}, log) == 0);
  const std::string table = exported(folder, whole, false), trace = exported(folder, whole, true);

  Engine engine = Seeds{1, 0}.stream(Purpose::shuffles);
  int killed = 0, grown = 0, runs = 0;
  // The longest wait before a kill, in seconds, kept where about half of the kills find a new cell.
  double longest = 0.1;
  while (killed < kKills && runs < kKills) {
    const fs::path parts = folder.path() / std::to_string(runs++);
    const std::vector<std::string> command = {"run",          file.string(), "--out",
                                              parts.string(), "--threads",   "2"};
    Records before;
    int status = -SIGKILL;
    while (killed < kKills && status == -SIGKILL) {
      const pid_t process = start(command, log);
      std::this_thread::sleep_for(std::chrono::duration<double>(longest * draw_uniform(engine)));
      ::kill(process, SIGKILL);
      status = wait_for(process);
      killed += status == -SIGKILL ? 1 : 0;
      const Records after = read_records(parts);
      for (const auto& [id, record] : before) {
        const auto kept = after.find(id);
        REQUIRE(kept != after.end());
        CHECK(same_numbers(kept->second, record));
      }
      const bool has_grown = after.size() > before.size();
      grown += has_grown ? 1 : 0;
      longest *= has_grown ? 1 / 1.1 : 1.1;
      before = after;
    }
    CHECK((status == -SIGKILL || status == 0));
    REQUIRE(call(command, log) == 0);
    CHECK(exported(folder, parts, false) == table);
    CHECK(exported(folder, parts, true) == trace);
    CHECK(call({"verify", parts.string()}, log) == 0);
  }
  MESSAGE(killed, " kills of ", runs, " runs, ", grown, " starts with new cells");
  CHECK(killed == kKills);
  CHECK(grown > kKills / 4);
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

}  // namespace moelab::store_test
