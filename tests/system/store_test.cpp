/// Several processes and threads on one run directory.

#include <doctest/doctest.h>

#include "tests/system/run_directory.h"

namespace moelab::store_test {
namespace {

namespace fs = std::filesystem;

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
  // Both processes are in the provenance, in any order of writing.
  CHECK(read_json_file(folder.path() / "shared/provenance.json").at("earlier").size() == 1);
}

}  // namespace moelab::store_test
