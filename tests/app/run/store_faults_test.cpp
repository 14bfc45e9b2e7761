/// A disk that refuses to write, to flush or to rename, at the n-th call or from it on: nothing that was
/// acknowledged is lost, the exit status is 3, and the same command finishes the run.

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "app/store/store.h"
#include "sim/base/error.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::store_faults_test {
namespace {

namespace fs = std::filesystem;

enum class Call { write, flush, rename };

struct Plan {
  Call call = Call::write;
  int first = 0;         ///< the call that fails, from 1
  bool onwards = false;  ///< and all after it
  int calls = 0;
  int fired = 0;

  bool strikes(Call made) {
    if (made != call) return false;
    ++calls;
    const bool fails = onwards ? calls >= first : calls == first;
    fired += fails ? 1 : 0;
    return fails;
  }
};
Plan plan;

/// Half of the bytes arrive, as on a disk that runs full.
ssize_t failing_write(int descriptor, const void* bytes, std::size_t size) {
  if (!plan.strikes(Call::write)) return ::write(descriptor, bytes, size);
  if (::write(descriptor, bytes, size / 2) < 0) return -1;
  errno = ENOSPC;
  return -1;
}

/// No machine fails in this test, only calls do: what is flushed is not waited for.
int failing_flush(int) {
  if (!plan.strikes(Call::flush)) return 0;
  errno = EIO;
  return -1;
}

int failing_rename(const char* from, const char* to) {
  if (!plan.strikes(Call::rename)) return ::rename(from, to);
  errno = EACCES;
  return -1;
}

/// While it lives, the disk fails as told; from then on it is whole, and fast.
struct BrokenDisk {
  BrokenDisk(Call call, int first, bool onwards) {
    plan = {call, first, onwards};
    disk_calls() = {failing_write, failing_flush, failing_rename};
  }
  ~BrokenDisk() {
    disk_calls() = {::write, [](int) { return 0; }, ::rename};
  }
  BrokenDisk(const BrokenDisk&) = delete;
  BrokenDisk& operator=(const BrokenDisk&) = delete;
};

/// The disk as it was, at the end of a test.
struct RestoredDisk {
  DiskCalls whole = disk_calls();
  ~RestoredDisk() { disk_calls() = whole; }
};

/// Calls `test(call, n, onwards)`, which says whether the fault fired, for n = 1, 2, … until it does not; the
/// number of faults.
template <class Test>
int each_fault(const Test& test) {
  const RestoredDisk restored;
  int faults = 0;
  for (const Call call : {Call::write, Call::flush, Call::rename}) {
    for (const bool onwards : {false, true}) {
      int first = 1;
      while (test(call, first, onwards)) ++first;
      CHECK_MESSAGE(first > 4, "the call ", static_cast<int>(call), " was made ", first - 1, " times");
      faults += first - 1;
    }
  }
  return faults;
}

CellResult with_array(const Cell& cell) {
  CellResult result = pretend_run(cell);
  result.arrays = {{"router_weight", {1, 2}, {0.5, 0.25}, {}}};
  return result;
}

}  // namespace

TEST_CASE("store: an acknowledged cell is on the disk whichever call fails after it") {
  const Scenario scenario = small_scenario();
  each_fault([&](Call call, int first, bool onwards) {
    const TemporaryFolder folder;
    std::vector<const Cell*> acknowledged;
    bool refused = false;
    {
      const BrokenDisk disk(call, first, onwards);
      try {
        StoreWriter writer(folder.path());
        for (std::size_t i = 0; i < 5; ++i) {
          writer.write(scenario.cells[i].id, with_array(scenario.cells[i]), 1);
          acknowledged.push_back(&scenario.cells[i]);
        }
      } catch (const EnvironmentError& error) {
        refused = true;
        CHECK(std::string(error.what()).find(folder.path().string()) != std::string::npos);
      }
    }
    CHECK(refused == (plan.fired > 0));
    const Records records = read_records(folder.path());
    for (const Cell* cell : acknowledged) {
      REQUIRE(records.contains(cell->id));
      CHECK(records.at(cell->id).metrics == pretend_run(*cell).metrics);
    }
    for (const auto& [id, record] : records) {
      const std::string bytes = file_text(array_file(folder.path(), id, "router_weight"));
      CHECK(record.arrays.at("router_weight") == checksum(bytes));
      CHECK(bytes == array_bytes(with_array(scenario.cells[0]).arrays[0]));
    }
    return plan.fired > 0;
  });
}

TEST_CASE("run: status 3 whichever call fails; the same command goes on to the same export") {
  Json scenario = tiny();
  scenario["save"] = {"routing"};
  scenario["arms"].erase("frozen");
  scenario["sweep"] = {{"data.train_samples", {20}}};
  const Bench whole(scenario);
  REQUIRE(ask({"run", whole.file, "--out", whole.run}).status == 0);
  const std::string exported = ask({"export", whole.run}).out;
  const int faults = each_fault([&](Call call, int first, bool onwards) {
    const Bench bench(scenario);
    const std::vector<std::string> command = {"run", bench.file, "--out", bench.run, "--threads", "2"};
    Answer answer;
    {
      const BrokenDisk disk(call, first, onwards);
      answer = ask(command);
    }
    const bool fired = plan.fired > 0;
    CHECK(answer.status == (fired ? 3 : 0));
    if (!fired) return false;
    CHECK(answer.err.find(bench.run) != std::string::npos);
    if (fs::exists(fs::path(bench.run) / "plan.json")) CHECK(ask({"status", bench.run}).status == 0);
    CHECK(ask(command).status == 0);
    CHECK(ask({"export", bench.run}).out == exported);
    CHECK(ask({"verify", bench.run}).status == 0);
    return true;
  });
  MESSAGE(faults, " faults");
}

}  // namespace moelab::store_faults_test
