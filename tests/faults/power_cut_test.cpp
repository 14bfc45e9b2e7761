/// The power fails at every change that a run makes: what was flushed before is there, of the rest anything
/// may be. The same command finishes the run, and runs no cell again whose record was flushed.

#include <doctest/doctest.h>

#include <map>
#include <sstream>

#include "app/store/record.h"
#include "tests/faults/faulty_program.h"
#include "tests/faults/traced_disk.h"

namespace moelab::power_cut_test {
namespace {

namespace fs = std::filesystem;
using namespace moelab::faults;

/// Whole records by cell, of all journals.
std::map<std::string, int> record_counts(const fs::path& run) {
  std::map<std::string, int> counts;
  if (!fs::is_directory(run / "journal")) return counts;
  for (const fs::directory_entry& journal : fs::directory_iterator(run / "journal")) {
    if (journal.path().extension() != ".jsonl") continue;
    std::istringstream lines(file_text(journal.path()));
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      try {
        ++counts[parse_record_line(line).cell];
      } catch (const std::exception&) {  // not flushed
      }
    }
  }
  return counts;
}

Json scenario_with_arrays() {
  Json scenario = tiny();
  scenario.erase("sweep");
  scenario["save"] = {"weights"};
  return scenario;
}

struct PowerBench : Bench {
  fs::path here = folder.path(), disk = here / "disk", run = disk / "runs" / "run", log = here / "log",
           trace = here / "trace";
  std::string table;
  Engine engine = chosen_engine();
  Findings findings;
  int states = 0;

  PowerBench() : Bench(scenario_with_arrays()) {
    fs::create_directory(disk);
    const fs::path undisturbed = here / "undisturbed";
    REQUIRE(call({"run", file, "--out", undisturbed.string(), "--threads", "1"}, log) == 0);
    REQUIRE(call({"export", undisturbed.string()}, log) == 0);
    table = file_text(log);
  }
  std::vector<std::string> command(const char* threads) const {
    return {"run", file, "--out", run.string(), "--threads", threads};
  }

  /// The changes of a run that starts from what the disk holds.
  std::vector<Change> traced_run(const char* threads) {
    std::ofstream(trace, std::ios::binary).flush();
    std::map<std::string, std::string> variables = variables_of({}, here, disk);
    variables["MOELAB_FAULT_TRACE"] = trace.string();
    {
      const Variables set(variables);
      REQUIRE(call(command(threads), log) == 0);
    }
    return read_trace(trace);
  }

  /// Holds what the command makes of the disk as it stands against what is promised.
  void resume(const std::set<std::string>& acknowledged, const std::string& place) {
    ++states;
    if (const int status = call(command("1"), log); status != 0) {
      findings.add("status " + std::to_string(status), place + file_text(log.string() + ".err"));
      return;
    }
    const std::map<std::string, int> counts = record_counts(run);
    for (const std::string& cell : acknowledged) {
      const auto found = counts.find(cell);
      if (found == counts.end() || found->second != 1)
        findings.add("a cell that was recorded ran again", place);
    }
    if (call({"export", run.string()}, log) != 0 || file_text(log) != table)
      findings.add("another export", place + file_text(log.string() + ".err"));
    if (call({"verify", run.string()}, log) != 0)
      findings.add("verify finds damage", place + file_text(log) + file_text(log.string() + ".err"));
  }

  /// Cuts the power behind each change, or behind some.
  void cut_everywhere(TracedDisk state, const std::vector<Change>& changes, const std::string& generation) {
    const int stride = whole() ? 1 : 12, subsets = whole() ? 4 : 1;
    int wait = draw_index(engine, stride);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      state.apply(changes[i]);
      if (wait-- > 0) continue;
      wait = stride - 1;
      for (int subset = -2; subset < subsets; ++subset) {
        const Left left = subset == -2 ? Left::nothing : subset == -1 ? Left::all : Left::some;
        state.cut_power(left, engine);
        resume(state.acknowledged(), generation + " behind change " + std::to_string(i + 1) + " of " +
                                         std::to_string(changes.size()) + ", " +
                                         (left == Left::nothing ? "nothing"
                                          : left == Left::all   ? "all"
                                                                : "some") +
                                         " of the rest is there: ");
      }
    }
  }
};

}  // namespace

TEST_CASE("program: after a power cut at any change it finishes the run and repeats no recorded cell") {
  PowerBench bench;
  const TracedDisk empty(bench.disk);
  const std::vector<Change> changes = bench.traced_run("1");
  bench.cut_everywhere(empty, changes, "first run");
  // Power cuts of a run that goes on after a power cut.
  for (int again = 0; again < (whole() ? 3 : 1); ++again) {
    TracedDisk state = empty;
    const int middle = draw_index(bench.engine, static_cast<int>(changes.size()));
    for (int i = 0; i < middle; ++i) state.apply(changes[static_cast<std::size_t>(i)]);
    state.cut_power(Left::some, bench.engine);
    const TracedDisk left(bench.disk);
    const std::vector<Change> resumed = bench.traced_run("2");
    bench.cut_everywhere(left, resumed, "resumed run");
  }
  MESSAGE(bench.states, " states after ", changes.size(), " changes of the first run");
  CHECK(bench.states > 20);
}

TEST_CASE("traced disk: what is not flushed may be lost, what is flushed is not") {
  const TemporaryFolder folder;
  Engine engine = Seeds{1, 0}.stream(Purpose::shuffles);
  TracedDisk disk(folder.path());
  const std::string file = (folder.path() / "a").string(), renamed = (folder.path() / "b").string();
  const auto change = [](TraceHeader::Operation operation, int descriptor, const std::string& path,
                         const std::string& to = "", const std::string& data = "") {
    return Change{{operation, descriptor, 0, 0, -1, 0, 0, 0}, path, to, data};
  };
  disk.apply(change(TraceHeader::open, 3, file));
  disk.apply(change(TraceHeader::write, 3, "", "", "text"));
  disk.cut_power(Left::all, engine);
  CHECK(file_text(file) == "text");
  disk.cut_power(Left::nothing, engine);
  CHECK(!fs::exists(file));
  disk.apply(change(TraceHeader::flush, 3, ""));
  disk.cut_power(Left::nothing, engine);
  CHECK(!fs::exists(file));  // its folder is not flushed
  disk.apply(change(TraceHeader::open, 4, folder.path().string()));
  disk.apply(change(TraceHeader::flush, 4, ""));
  disk.apply(change(TraceHeader::rename, 0, file, renamed));
  disk.apply(change(TraceHeader::write, 3, "", "", " and more"));
  disk.cut_power(Left::nothing, engine);
  CHECK(file_text(file) == "text");
  CHECK(!fs::exists(renamed));
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    disk.cut_power(Left::some, engine);
    CHECK(fs::exists(file) != fs::exists(renamed));
    const std::string text = file_text(fs::exists(file) ? file : renamed);
    CHECK(text.starts_with("text"));
    seen.insert(text);
  }
  CHECK(seen.size() > 5);
}

}  // namespace moelab::power_cut_test
