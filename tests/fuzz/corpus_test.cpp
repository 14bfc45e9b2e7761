/// The fuzzed readers of targets.h fed with their corpora, whole, cut off and mutated: what a build of any
/// compiler can do, under sanitizers or without.

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "sim/base/random.h"
#include "tests/app/cli/answer.h"
#include "tests/app/run/test_scenario.h"
#include "tests/fuzz/targets.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Of each file, at equal distances.
constexpr std::size_t kCuts = 24;
constexpr int kMutants = 150;

struct Target {
  const char* corpus;  ///< below tests/
  bool (*read)(std::string_view);
};

constexpr Target kTargets[] = {{"fuzz/corpus/scenario", fuzz_scenario},
                               {"fuzz/corpus/setting", fuzz_setting},
                               {"fuzz/corpus/journal", fuzz_journal},
                               {"fuzz/corpus/dump_arrays", fuzz_dump_arrays},
                               {"fuzz/corpus/dump_lines", fuzz_dump_lines},
                               {"fuzz/corpus/dump_table", fuzz_dump_table},
                               {"sim/data/npy/files", fuzz_npy}};  // NumPy's own files serve twice

/// The files of a corpus in the order of their names; make.py, which wrote one, is none of it.
std::vector<fs::path> corpus_files(const char* corpus) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(MOELAB_TEST_DATA) / corpus)) {
    if (entry.path().extension() != ".py") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Up to four edits: a byte changed, a stretch left out, a stretch said twice.
std::string mutant(std::string bytes, Engine& engine) {
  const int edits = 1 + draw_index(engine, 4);
  for (int i = 0; i < edits && !bytes.empty(); ++i) {
    const std::size_t at = static_cast<std::size_t>(draw_index(engine, static_cast<int>(bytes.size())));
    const std::size_t length = static_cast<std::size_t>(1 + draw_index(engine, 16));
    switch (draw_index(engine, 3)) {
      case 0:
        bytes[at] = static_cast<char>(draw_index(engine, 256));
        break;
      case 1:
        bytes.erase(at, length);
        break;
      default:
        bytes.insert(at, bytes.substr(at, length));
    }
  }
  return bytes;
}

TEST_CASE("fuzzed readers: accepted or refused as the file's name says, and nothing else for what is near") {
  Engine engine = Seeds{1, 0}.stream(Purpose::problem);
  for (const Target& target : kTargets) {
    int accepted = 0, refused = 0;
    for (const fs::path& file : corpus_files(target.corpus)) {
      CAPTURE(file);
      const std::string bytes = file_text(file);
      const bool is_refused = file.filename().string().starts_with("refused_");
      CHECK(target.read(bytes) != is_refused);
      ++(is_refused ? refused : accepted);
      const std::size_t stride = std::max<std::size_t>(1, bytes.size() / kCuts);
      for (std::size_t size = 0; size < bytes.size(); size += stride) {
        CAPTURE(size);
        CHECK_NOTHROW(target.read(bytes.substr(0, size)));
      }
      for (int i = 0; i < kMutants; ++i) {
        const std::string changed = mutant(bytes, engine);
        CAPTURE(changed);
        CHECK_NOTHROW(target.read(changed));
      }
    }
    CHECK(accepted >= 3);
    CHECK(refused >= 3);
  }
}

TEST_CASE("fuzzed readers: plans and sessions of a run, and what is near") {
  const Bench bench;
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--threads", "1"}).status == 0);
  Engine engine = Seeds{1, 0}.stream(Purpose::problem);
  const fs::path session = fs::directory_iterator(fs::path(bench.run) / "sessions")->path();
  for (const auto& [given, read] :
       {std::pair(fs::path(bench.run) / "plan.json", &fuzz_plan), std::pair(session, &fuzz_session)}) {
    const auto& file = given;
    CAPTURE(file);
    const std::string bytes = file_text(file);
    CHECK(read(bytes));
    CHECK(!read(""));
    CHECK(!read("[]"));
    for (int i = 0; i < 4 * kMutants; ++i) {
      const std::string changed = mutant(bytes, engine);
      CAPTURE(changed);
      CHECK_NOTHROW(read(changed));
    }
  }
}

TEST_CASE("fuzzed readers: the properties notice what breaks them") {
  CHECK_NOTHROW(
      check_canonical(Json::parse("[1, 1.0, -0.0, 1e300, 0.1, \"\\u0000é\", {\"b\": 1, \"a\": null}]")));
  CHECK_THROWS(check_canonical(Json(std::numeric_limits<double>::quiet_NaN())));  // its text is no JSON

  const Scenario scenario = expand_scenario(tiny(), "", {});
  CHECK_NOTHROW(check_expansion(scenario));
  Scenario changed = scenario;
  changed.cells.back().id.back() ^= 1;
  CHECK_THROWS_AS(check_expansion(changed), std::logic_error);
  changed = scenario;
  changed.document["seeds"]["count"] = 1;
  CHECK_THROWS_AS(check_expansion(changed), std::logic_error);
  changed = scenario;
  CellOptions options = *scenario.cells.front().options;
  options.experiment.model = ModelOptions();  // without what the file says, some of which has no default
  options.experiment.data = DataOptions();
  changed.cells.front().options = std::make_shared<const CellOptions>(options);
  CHECK_THROWS_AS(check_expansion(changed), UserError);
}

}  // namespace
}  // namespace moelab
