/// Every call of call_table.h fails once, and from then on, at every point of a run and of each reader: the
/// program ends in its own words, tells nothing wrong, and the same command comes to the same export.

#include <doctest/doctest.h>

#include <set>

#include "tests/faults/faulty_program.h"

namespace moelab::failing_calls_test {
namespace {

namespace fs = std::filesystem;
using namespace moelab::faults;

constexpr std::uint64_t kForever = ~std::uint64_t{0};

/// How many points of a call are tried: all of the first ones, then some of the others.
struct Share {
  std::uint64_t all_of = 0;
  int of_others = 0;
};

struct FailingVerb {
  const char* name;
  bool has_figure = false;           ///< gnuplot takes its time
  bool beside_another_plan = false;  ///< the run begins in a folder that has another plan
};
constexpr FailingVerb kVerbs[] = {{"run"},    {"run", false, true}, {"status"}, {"export"},
                                  {"claims"}, {"verify"},           {"report"}, {"plot", true}};

Share share_of(const CallEntry& call, const FailingVerb& verb) {
  const bool memory = call.call == Call::memory;
  if (!whole()) return {0, verb.has_figure ? 1 : memory ? 10 : 1};
  if (verb.has_figure) return memory ? Share{0, 300} : Share{100, 0};
  return memory ? Share{2000, 300} : Share{2000, 0};
}

std::set<std::uint64_t> points_of(std::uint64_t count, const Share& share, Engine& engine) {
  std::set<std::uint64_t> points;
  for (std::uint64_t i = 1; i <= std::min(count, share.all_of); ++i) points.insert(i);
  if (count <= share.all_of) return points;
  for (int i = 0; i < share.of_others; ++i) {
    const int others = static_cast<int>(count - share.all_of);
    points.insert(share.all_of + 1 + static_cast<std::uint64_t>(draw_index(engine, others)));
  }
  return points;
}

Json scenario_with_claim() {
  Json scenario = tiny();
  scenario.erase("sweep");
  scenario["save"] = {"weights"};
  scenario["claims"] = Json::parse(R"([{"id": "learned_beats_frozen", "op": "<",
    "left": {"arm": "learned", "metric": "test_nmse_top1"},
    "right": {"arm": "frozen", "metric": "test_nmse_top1"}, "at": "each"}])");
  return scenario;
}

/// A run of the scenario beside another plan, undisturbed, and where disturbed ones go.
struct FailingBench : Bench {
  fs::path here = folder.path(), watched = here / "watched", finished = watched / "finished",
           fresh = watched / "fresh", other = here / "other", log = here / "log";
  std::string table;

  explicit FailingBench(const Json& scenario) : Bench(scenario) {
    fs::create_directory(watched);
    REQUIRE(call({"run", file, "--out", other.string(), "--set", "train.steps=5"}, log) == 0);
    fs::copy(other, finished, fs::copy_options::recursive);
    REQUIRE(call({"run", file, "--out", finished.string(), "--threads", "1"}, log) == 0);
    table = exported(finished);
  }
  std::string exported(const fs::path& run) const {
    const int status = call({"export", run.string()}, log);
    return status == 0 ? file_text(log)
                       : "status " + std::to_string(status) + ": " + file_text(log.string() + ".err");
  }
  std::vector<std::string> words(const std::string& verb) const {
    if (verb == "run") return {"run", file, "--out", fresh.string(), "--threads", "2"};
    return {verb, finished.string()};
  }
  Ended run(const FailingVerb& verb, const Fault& fault) const {
    fs::remove_all(fresh);
    if (verb.beside_another_plan) fs::copy(other, fresh, fs::copy_options::recursive);
    return run_with(fault, words(verb.name), here, watched);
  }
};

/// Compares how the program ended with the promise.
void judge(const FailingBench& bench, const std::string& verb, const Fault& fault, const Ended& ended,
           const Ended& undisturbed, Findings& findings) {
  const std::string place = verb + ", " + fault.call->name + ": ";
  const std::string example = text_of(fault) + "\n" + ended.out.substr(0, 300) + ended.err.substr(0, 600);
  const bool may_fail_cells = verb == "run" || verb == "verify";
  if (ended.status != 0 && ended.status != 3 && !(ended.status == 1 && may_fail_cells))
    findings.add(place + "status " + std::to_string(ended.status), example);
  if (ended.err.find("defect of the program") != std::string::npos) findings.add(place + "a defect", example);
  const std::string said = without_notes(ended.err);
  if (ended.status == 3 && (sentences(said) != 1 || !said.starts_with("moelab: error: ")))
    findings.add(place + "not one sentence", example);
  // That something could not be read is no damage.
  for (const char* damage : {"other bytes", "damaged", ": missing"}) {
    if (ended.status == 1 && ended.out.find(damage) != std::string::npos)
      findings.add(place + "called damage", example);
  }
  if (verb != "run") {
    if (ended.status == 0 && ended.out != undisturbed.out) findings.add(place + "another answer", example);
    return;
  }
  if (const int status = call(bench.words("run"), bench.log); status != 0) {
    findings.add(place + "does not resume", example + "\nthen " + file_text(bench.log.string() + ".err"));
    return;
  }
  if (const std::string table = bench.exported(bench.fresh); table != bench.table)
    findings.add(place + "resumes to another export", example + "\nthen " + table.substr(0, 500));
  if (call({"verify", bench.fresh.string()}, bench.log) != 0)
    findings.add(place + "resumes to a damaged folder", example + "\nthen " + file_text(bench.log));
}

/// A wait that is interrupted for ever, or halves of a byte, never end; of allocations a quarter has to do.
bool may_last(const CallEntry& call, int error, std::uint64_t point) {
  if (call.errors[error] == EINTR || call.errors[error] == kHalf) return false;
  return !whole() || call.call != Call::memory || point % 4 == 0;
}

int fail_everywhere(const FailingBench& bench, const FailingVerb& verb, Engine& engine) {
  Findings findings;
  const Ended undisturbed = bench.run(verb, {});
  REQUIRE(undisturbed.status == 0);
  int failures = 0;
  for (const CallEntry& entry : kCalls) {
    const std::uint64_t count = bench.run(verb, {&entry, EIO, 0, 0}).seen;
    for (int i = 0; i < entry.error_count; ++i) {
      for (const std::uint64_t point : points_of(count, share_of(entry, verb), engine)) {
        for (const std::uint64_t last : {point, kForever}) {
          if (last == kForever && !may_last(entry, i, point)) continue;
          const Fault fault = {&entry, entry.errors[i], point, last};
          const Ended ended = bench.run(verb, fault);
          if (ended.failed == 0) continue;  // threads do not count alike each time
          ++failures;
          judge(bench, verb.name, fault, ended, undisturbed, findings);
        }
      }
    }
  }
  if (bench.exported(bench.finished) != bench.table) findings.add(verb.name, "left another export behind");
  if (call({"verify", bench.finished.string()}, bench.log) != 0)
    findings.add(verb.name, file_text(bench.log));
  return failures;
}

}  // namespace

TEST_CASE("program: a call that fails at any point is told in a sentence, and nothing is lost") {
  Engine engine = chosen_engine();
  Json with_figure = scenario_with_claim();
  with_figure["figures"] =
      Json::parse(R"([{"id": "loss", "x": "step", "y": "test_nmse_top1", "series": "arm"}])");
  const FailingBench plain(scenario_with_claim()), drawn(with_figure);
  for (const FailingVerb& verb : kVerbs) {
    CAPTURE(verb.beside_another_plan);
    const int failures = fail_everywhere(verb.has_figure ? drawn : plain, verb, engine);
    MESSAGE(std::string(verb.name), ": ", failures, " failures");
    CHECK(failures > 10);
  }
}

}  // namespace moelab::failing_calls_test
