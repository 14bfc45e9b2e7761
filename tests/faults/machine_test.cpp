/// What the machine answers that a disk does not: host names of any form, locks that do not work, clocks.

#include <doctest/doctest.h>

#include "tests/faults/faulty_program.h"

namespace moelab::machine_test {
namespace {

namespace fs = std::filesystem;
using namespace moelab::faults;

struct MachineBench : Bench {
  fs::path here = folder.path(), watched = here / "watched";
  MachineBench() : Bench(tiny()) { fs::create_directory(watched); }
};

}  // namespace

TEST_CASE("machine: whatever the host's name is, the journal is in its folder and the run is whole") {
  for (const std::string& name :
       {std::string("a/b"), std::string("../../up"), std::string("/"), std::string(".tmp"),
        std::string("\xff\x1b[2J"), std::string("two\nlines"), std::string(), std::string(200, 'x')}) {
    CAPTURE(name);
    const MachineBench bench;
    const std::string run = (bench.watched / "run").string();
    const Variables host({{"MOELAB_FAULT_HOST", name}});
    CHECK(run_with({}, {"run", bench.file, "--out", run}, bench.here, bench.watched).status == 0);
    int journals = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(run) / "journal"))
      journals += entry.path().extension() == ".jsonl" ? 1 : 0;
    CHECK(journals == 1);
    CHECK(std::distance(fs::directory_iterator(bench.watched), fs::directory_iterator()) == 1);
    CHECK(call({"verify", run}, bench.here / "log") == 0);
    CHECK(file_text(bench.here / "log").find("missing") == std::string::npos);
  }
}

TEST_CASE("machine: leases need locks that work, and a run without leases does not") {
  const CallEntry& lock = kCalls[static_cast<int>(Call::lock)];
  for (int i = 0; i < lock.error_count; ++i) {
    const MachineBench bench;
    const std::string run = (bench.watched / "run").string();
    const Fault fault = {&lock, lock.errors[i], 1, ~std::uint64_t{0}};
    const Ended leased =
        run_with(fault, {"run", bench.file, "--out", run, "--leases"}, bench.here, bench.watched);
    CHECK(leased.failed > 0);
    CHECK(leased.status == 3);
    CHECK_MESSAGE(leased.err.find("leases: cannot lock: ") != std::string::npos, leased.err);
    CHECK_MESSAGE(leased.err.find("without --leases") != std::string::npos, leased.err);
    CHECK(run_with(fault, {"run", bench.file, "--out", run}, bench.here, bench.watched).status == 0);
  }
}

TEST_CASE("machine: a clock that stands still and a process number that returns repeat no journal's name") {
  const MachineBench bench;
  const std::string run = (bench.watched / "run").string();
  const Variables frozen({{"MOELAB_FAULT_CLOCK", "1000000000 0"}, {"MOELAB_FAULT_PROCESS", "77"}});
  for (const char* seeds : {"seeds.count=1", "seeds.count=2", "seeds.count=3"}) {
    const Ended ended =
        run_with({}, {"run", bench.file, "--out", run, "--set", seeds}, bench.here, bench.watched);
    CHECK_MESSAGE(ended.status == 0, ended.err);
  }
  int journals = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(run) / "journal")) {
    const std::string name = entry.path().filename().string();
    CHECK_MESSAGE(name.find("-77-1000000000") != std::string::npos, name);
    journals += entry.path().extension() == ".jsonl" ? 1 : 0;
  }
  CHECK(journals == 3);
  CHECK(call({"verify", run}, bench.here / "log") == 0);
}

TEST_CASE("machine: a clock that jumps, forward or back, loses nothing and changes no number") {
  const MachineBench bench;
  const fs::path log = bench.here / "log";
  const auto run_and_export = [&](const char* name) {
    const std::string run = (bench.watched / name).string();
    for (const char* seeds : {"seeds.count=1", "seeds.count=3"}) {
      const Ended ended =
          run_with({}, {"run", bench.file, "--out", run, "--set", seeds}, bench.here, bench.watched);
      CHECK_MESSAGE(ended.status == 0, ended.err);
    }
    CHECK(call({"verify", run}, log) == 0);
    REQUIRE(call({"export", run}, log) == 0);
    return file_text(log);
  };
  const std::string table = run_and_export("undisturbed");
  for (const char* clock : {"1000000000 -3600", "1000000000 86400", "3600 -3600"}) {
    CAPTURE(clock);
    const Variables jumping(std::map<std::string, std::string>{{"MOELAB_FAULT_CLOCK", clock}});
    CHECK(run_and_export(clock) == table);
  }
}

TEST_CASE("machine: verify says that it cannot read the folder of plans") {
  const MachineBench bench;
  const fs::path run = bench.watched / "run";
  REQUIRE(call({"run", bench.file, "--out", run.string()}, bench.here / "log") == 0);
  fs::remove_all(run / "plans");
  fs::create_symlink("plans", run / "plans");  // a loop: nothing can be said of what is behind it
  CHECK(call({"verify", run.string()}, bench.here / "log") == 3);
  CHECK(file_text(bench.here / "log.err").find("plans") != std::string::npos);
}

}  // namespace moelab::machine_test
