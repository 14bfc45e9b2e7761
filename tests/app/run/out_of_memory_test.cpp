/// The program reports memory that runs out as such, and never as damage of a file. This program's operator
/// new fails here when asked to (for every test of this program).

#include <doctest/doctest.h>

#include <limits>
#include <new>

#include "app/store/store.h"
#include "sim/data/npy.h"
#include "tests/app/cli/answer.h"
#include "tests/app/run/test_scenario.h"
#include "tests/replaced_allocation.h"

namespace {

constexpr long kNever = std::numeric_limits<long>::max();
thread_local long allocations_left = kNever;
thread_local bool fails_onwards = false;

}  // namespace

void moelab::before_allocation() {
  if (allocations_left != kNever && --allocations_left < 0) {
    if (!fails_onwards) allocations_left = kNever;
    throw std::bad_alloc();
  }
}

namespace moelab::out_of_memory_test {
namespace {

/// While it lives, all allocations of this thread but the first `count` fail, or that which follows them
/// alone.
struct Memory {
  Memory(long count, bool onwards) {
    allocations_left = count;
    fails_onwards = onwards;
  }
  ~Memory() { allocations_left = kNever; }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

/// Allocations that `work` makes.
template <class Work>
long allocations_of(const Work& work) {
  constexpr long kMany = kNever - 1;
  const Memory memory(kMany, false);
  work();
  return kMany - allocations_left;
}

/// Calls `work` and lets each allocation after the first `spared` fail, alone and with all that follow.
/// `work` may throw std::bad_alloc and nothing else. Returns the number of failures.
template <class Work>
long each_failure(const Work& work, long spared = 0) {
  long failures = 0;
  for (const bool onwards : {false, true}) {
    bool failed = true;
    for (long count = spared; failed; ++count) {
      failed = false;
      try {
        const Memory memory(count, onwards);
        work();
      } catch (const std::bad_alloc&) {
        failed = true;
        ++failures;
      }
    }
  }
  return failures;
}

}  // namespace

TEST_CASE("memory: records that the memory does not hold are no damage") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  {
    StoreWriter writer(folder.path());
    for (const Cell& cell : scenario.cells) writer.write(cell.id, pretend_run(cell), 1);
  }
  REQUIRE(read_records(folder.path()).size() == scenario.cells.size());
  // The library lists folders without a way to tell of memory that it lacks: as much as empty journals take.
  const TemporaryFolder empty;
  for (const auto& journal : std::filesystem::directory_iterator(folder.path() / "journal"))
    replace_file(empty.path() / "journal" / journal.path().filename(), "");
  const long listing = allocations_of([&] { read_records(empty.path()); });
  CHECK(each_failure([&] { read_records(folder.path()); }, listing) > 100);
  std::vector<std::string> problems;
  CHECK(each_failure([&] { read_records(folder.path(), problems); }, listing) > 100);
  CHECK(problems.empty());
}

TEST_CASE("memory: an array that the memory does not hold is no damage") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "x.npy";
  replace_file(file, array_bytes({"x", {3, 2}, {1, 2, 3, 4, 5, 6}, {}}));
  const auto content = std::make_shared<const FileContent>(file);
  CHECK(each_failure([&] { NpyReader(file, "x", content).read_finite(0, 3); }) > 4);
  CHECK(each_failure([&] { FileContents().name_of(file); }) > 4);
}

TEST_CASE("memory: whatever the program lacks it for, it ends with status 3 and says so") {
  for (const bool onwards : {false, true}) {
    for (const long count : {0, 1, 10, 100, 1000}) {
      const std::vector<const char*> words = {"moelab", "list"};
      const Answer answer = caught([&] {
        const Memory memory(count, onwards);
        return run_command_line(static_cast<int>(words.size()), words.data());
      });
      CHECK(answer.status == 3);
      if (!onwards) CHECK(answer.err == "moelab: error: not enough memory for moelab list\n");
    }
  }
}

}  // namespace moelab::out_of_memory_test
