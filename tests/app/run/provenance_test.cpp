#include "app/store/provenance.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "app/run/figures.h"
#include "app/run/session.h"
#include "sim/base/kernels/kernels.h"
#include "tests/app/cli/answer.h"
#include "tests/app/run/test_scenario.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::provenance_test {
namespace {

namespace fs = std::filesystem;

/// A run whose first four cells come from one build and the others from another.
struct TwoBuilds {
  TemporaryFolder folder;
  TwoBuilds() {
    const Scenario scenario = small_scenario();
    keep_plan(folder.path(), scenario);
    for (const std::size_t start : {std::size_t{0}, std::size_t{4}}) {
      StoreWriter writer(folder.path());
      Json provenance = provenance_json({{"moelab"}, 1, writer.journal_name()}, scenario);
      if (start > 0) provenance["commit"] = "another";
      write_provenance(folder.path(), provenance);
      for (std::size_t i = start; i < start + 4; ++i)
        writer.write(scenario.cells[i].id, pretend_run(scenario.cells[i]), 1);
    }
  }
};

}  // namespace

TEST_CASE("provenance: a text from the machine is one part of a file name, whatever it is") {
  CHECK(file_name_part("node-17.cluster_a.example") == "node-17.cluster_a.example");
  CHECK(file_name_part("a/b") == "a-b");
  CHECK(file_name_part("../up") == "-.-up");
  CHECK(file_name_part("") == "unknown");
  std::string every;
  for (int letter = 1; letter < 256; ++letter) every += static_cast<char>(letter);
  for (std::size_t start = 0; start < every.size(); start += 50) {
    const fs::path part = file_name_part(every.substr(start));
    CHECK(part.filename() == part);
    CHECK(part.string().size() <= 64);
    CHECK_NOTHROW(Json(part.string()).dump());
  }
}

TEST_CASE("provenance: what made the results, and of every session") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  ::setenv("SLURM_JOB_ID", "17", 1);
  ::setenv("SLURM_ARRAY_TASK_ID", "3", 1);
  run_session(scenario,
              {.directory = folder.path(), .arguments = {"moelab", "run", "x.json"}, .share = {0, 2}},
              [](const Cell& cell, const CellProgress&) { return pretend_run(cell); });
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_ARRAY_TASK_ID");
  const Json first = read_json_file(folder.path() / "provenance.json");
  CHECK(first.at("slurm") == Json::parse(R"({"job": "17", "array_task": "3"})"));
  for (const char* library : {"Eigen", "Boost", "nlohmann_json", "fmt", "Highway", "NLopt", "CLI11"})
    CHECK(first.at("libraries").at(library).get<std::string>().find('.') != std::string::npos);
  CHECK(first.at("vector_level") == kernels::vector_level_name());
  CHECK(first.at("arguments") == Json({"moelab", "run", "x.json"}));
  CHECK(first.at("scenario") == scenario.document);
  CHECK(first.at("peak_memory_bytes") > 1000000);
  CHECK(first.at("ended_at") >= first.at("started_at"));
  CHECK(first.at("earlier").empty());

  run_session(scenario, {.directory = folder.path()},
              [](const Cell& cell, const CellProgress&) { return pretend_run(cell); });
  const Json second = read_json_file(folder.path() / "provenance.json");
  CHECK(second.at("slurm").is_null());
  REQUIRE(second.at("earlier").size() == 1);
  Json before = first;
  for (const char* own : {"earlier", "checksum"}) before.erase(own);
  CHECK(second.at("earlier")[0] == before);
}

TEST_CASE("provenance: a session with any byte changed is refused, and verify names provenance.json") {
  const TwoBuilds run;
  const fs::path session = fs::directory_iterator(run.folder.path() / "sessions")->path();
  const std::string text = file_text(session);
  for (std::size_t place = 0; place < text.size(); place += 7) {
    std::string damaged = text;
    damaged[place] ^= 1;
    std::ofstream(session, std::ios::binary) << damaged;
    try {
      read_records(run.folder.path());
      FAIL("byte ", place, " was read");
    } catch (const UserError& error) {
      CHECK(std::string(error.what()).starts_with(session.string() + ": damaged: "));
    }
  }
  std::ofstream(session, std::ios::binary) << text;
  CHECK(read_records(run.folder.path()).size() == 8);
  const fs::path gathered = run.folder.path() / "provenance.json";
  std::ofstream(gathered, std::ios::app) << " ";
  CHECK(ask({"verify", run.folder.path().string()}).out.find("provenance.json: damaged: ") !=
        std::string::npos);
}

TEST_CASE("provenance: builds differ by version, commit, compiler, flags and fused multiply-add") {
  const Json provenance = provenance_json({}, {});
  const std::string name = build_name(provenance);
  CHECK(name.starts_with(program_version() + " (commit " + program_commit()));
  for (const char* field : {"version", "commit", "compiler", "flags"}) {
    Json other = provenance;
    other[field] = "another";
    CHECK(build_name(other) != name);
  }
  Json wide = provenance, wider = provenance, narrow = provenance;
  wide["vector_level"] = "avx2";
  wider["vector_level"] = "avx512";
  narrow["vector_level"] = "sse";
  CHECK(build_name(wide) == build_name(wider));
  CHECK(build_name(wide) != build_name(narrow));
  CHECK(build_name(nullptr) == "unknown");
}

TEST_CASE("provenance: a run of two builds says so wherever its numbers are shown") {
  const TwoBuilds run;
  const std::string directory = run.folder.path().string();
  const RunResults results = load_results(run.folder.path());
  REQUIRE(results.builds.size() == 2);
  for (const auto& [name, cells] : results.builds) CHECK(cells == 4);
  const std::vector<std::vector<std::string>> verbs = {
      {"status", directory}, {"export", directory}, {"claims", directory}, {"compare", directory, directory}};
  for (const std::vector<std::string>& verb : verbs) {
    const Answer answer = ask(verb);
    CHECK(answer.err.find("note: Cells come from 2 builds of moelab: ") != std::string::npos);
    CHECK(answer.err.find("commit another") != std::string::npos);
    CHECK(answer.out.find("another") == std::string::npos);
  }
  const Figure figure = built_figure<Figure>(
      Json::parse(R"({"id": "f", "x": "data.train_samples", "y": "a_metric"})"), results);
  CHECK(figure.caption.ends_with("Cells come from 2 builds of moelab."));
  REQUIRE(ask({"report", directory}).status == 0);
  CHECK(file_text(run.folder.path() / "report.html").find("Cells come from 2 builds") != std::string::npos);

  // A lost session file is another build for all that is known; equal ones are one.
  const fs::path sessions = run.folder.path() / "sessions";
  fs::remove(fs::directory_iterator(sessions)->path());
  CHECK(load_results(run.folder.path()).builds.contains("unknown"));
  fs::remove_all(sessions);
  CHECK(builds_text(load_results(run.folder.path())).empty());
}

}  // namespace moelab::provenance_test
