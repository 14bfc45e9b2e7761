/// A run folder of version 0.1.0 (tests/stored/older_run): the program reads it, and runs what changed.

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/app/cli/answer.h"
#include "tests/app/run/test_scenario.h"
#include "tests/temporary_folder.h"

namespace moelab::older_run_test {
namespace {

namespace fs = std::filesystem;

/// A copy of the stored folder: six cells in three arms, and the export of the program that ran them.
struct OlderRun {
  TemporaryFolder folder;
  std::string run = (folder.path() / "run").string(), file = (folder.path() / "older.json").string();
  OlderRun() {
    fs::copy(fs::path(MOELAB_TEST_DATA) / "stored" / "older_run", folder.path(), fs::copy_options::recursive);
  }
  std::string stored_export() const { return file_text(folder.path() / "export.csv"); }
};

}  // namespace

TEST_CASE("the verbs that read take a run folder of version 0.1.0, and its numbers are the same") {
  const OlderRun older;
  CHECK(ask({"export", older.run}).out == older.stored_export());
  for (const char* verb : {"status", "claims", "table"}) {
    CAPTURE(verb);
    CHECK(ask({verb, older.run}).status == 0);
  }
  const Json claims = Json::parse(ask({"claims", older.run, "--json"}).out);
  REQUIRE(claims.size() == 1);
  CHECK(claims[0].at("verdict") == "inconclusive");
  CHECK(ask({"report", older.run, "--out", (older.folder.path() / "page.html").string()}).status == 0);
}

TEST_CASE("a new run in a folder of version 0.1.0 keeps its cells, except where a field has a new meaning") {
  const OlderRun older;
  // A number as temperature was the start of a learned one: the two cells of that arm have new ids.
  const Answer verified = ask({"verify", older.run});
  CHECK(verified.status == 1);
  CHECK((verified.out + verified.err).find("2 of 6 cells have other ids now") != std::string::npos);
  const Json planned = Json::parse(ask({"plan", older.file, "--out", older.run, "--json"}).out);
  CHECK(planned.at("to_run") == 2);
  const Answer answer = ask({"run", older.file, "--out", older.run});
  CHECK(answer.status == 0);
  CHECK(answer.err.find("arm 'cosine': the router's temperature 0.5 is fixed") != std::string::npos);
  CHECK(answer.err.find("Cells come from 2 builds of moelab: 0.1.0 ") != std::string::npos);
}

}  // namespace moelab::older_run_test
