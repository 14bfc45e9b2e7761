/// What the verbs refuse of a command line: empty texts, words that do not go together, and files that are no
/// place for an answer; and that an error is one line.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "app/cli/verbs.h"
#include "app/scenario/json.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::refused_words_test {
namespace {

namespace fs = std::filesystem;

void check_refused(const std::vector<std::string>& words, const std::string& place,
                   const std::string& message) {
  const Answer answer = ask(words);
  CAPTURE(words[0]);
  CHECK(answer.status == 2);
  CHECK(answer.out.empty());
  CHECK_MESSAGE(answer.err.starts_with("moelab: error: " + place + ": "), answer.err);
  CHECK_MESSAGE(answer.err.find(message) != std::string::npos, answer.err);
  CHECK(std::count(answer.err.begin(), answer.err.end(), '\n') == 1);
}

struct Run : Bench {
  Run() { REQUIRE(ask({"run", file, "--out", run}).status == 0); }
};

}  // namespace

TEST_CASE("refused words: no option of any verb takes an empty text") {
  for (const Verb& verb : verbs()) {
    const VerbCall call = verb.call();
    for (const Option& option : call.options.list) {
      if (option.is_flag() || std::holds_alternative<int*>(option.value) ||
          std::holds_alternative<double*>(option.value) || !option.is_named())
        continue;
      const Answer answer = ask({verb.name, "a", option.name, ""});
      CAPTURE(verb.name + " " + option.name);
      CHECK(answer.status == 2);
      CHECK_MESSAGE(answer.err == "moelab: error: " + option.name + ": got '', needs a non-empty text\n",
                    answer.err);
    }
  }
  check_refused({"list", ""}, "NAME", "got '', needs a non-empty text");
}

TEST_CASE("refused words: options that do not go together") {
  const std::string beside = "cannot be combined with --";
  check_refused({"report", "folder", "--ledger", "a.md", "--out", "b.html"}, "--out", beside + "ledger");
  check_refused({"report", "folder", "--ledger", "a.md", "--follow"}, "--follow", beside + "ledger");
  check_refused({"check", "--list", "--figures", "folder"}, "--figures", beside + "list");
  CHECK(Json::parse(ask({"claims", "folder", "--markdown", "--json"}).out).at("error").at("path") ==
        "--markdown");
}

TEST_CASE("refused words: no answer goes where a run folder keeps its store") {
  const Run bench;
  const std::string id = Json::parse(ask({"status", bench.run, "--json"}).out).at("plan");
  const fs::path journal = fs::directory_iterator(fs::path(bench.run) / "journal")->path();
  const std::string before = file_text(journal);
  for (const fs::path& file :
       {journal, fs::path(bench.run) / "plan.json", fs::path(bench.run) / "provenance.json",
        fs::path(bench.run) / "cells/new.csv", fs::path(bench.run) / "plans" / id / "plan.json"}) {
    const std::string place = file.string(),
                      message = "'" + place + "' belongs to the store of the run folder";
    check_refused({"export", bench.run, "--out", place}, "--out", message);
    check_refused({"table", bench.run, "--out", place}, "--out", message);
    check_refused({"report", bench.run, "--out", place}, "--out", message);
  }
  CHECK(file_text(journal) == before);
  for (const char* own : {"table.csv", "plans/cells.csv/table.csv", "figures/table.csv"})
    CHECK(ask({"export", bench.run, "--out", bench.run + "/" + own}).status == 0);
}

TEST_CASE("refused words: a path through a file is no place for a folder or a file") {
  const Bench bench;
  const std::string place = bench.file + "/x",
                    message = "'" + place + "' lies below '" + bench.file + "', which is no";
  for (const std::string verb : {"run", "sample", "slurm"})
    check_refused({verb, bench.file, "--out", place}, "--out", message);
  check_refused({"new", "idea", "--out", place}, "--out", message);
  check_refused({"export", "no/such/run", "--out", place}, "--out", message);
}

TEST_CASE("refused words: an error is one line, however its names are written") {
  Json scenario = tiny();
  scenario["arms"]["a\tb"] = Json::object();
  check_refused({"validate", Bench(scenario).file}, "arms", "a\\tb");
  Json unknown = tiny();
  unknown["model"]["x\ny\tz"] = 1;
  check_refused({"validate", Bench(unknown).file}, "model.x\\ny\\tz", "unknown key 'x\\ny\\tz'");
  unknown = tiny();
  unknown["arms"]["learned"][std::string(200000, 'k')] = 1;
  const Answer answer = ask({"validate", Bench(unknown).file});
  CHECK(answer.status == 2);
  CHECK(answer.err.size() < 2000);
  CHECK(answer.err.find("k … (200013 bytes) … k") != std::string::npos);
}

TEST_CASE("refused words: a plan's folder is no run folder") {
  const Run bench;
  const std::string id = Json::parse(ask({"status", bench.run, "--json"}).out).at("plan");
  const std::string folder = bench.run + "/plans/" + id;
  for (const char* verb : {"status", "export", "claims"}) {
    check_refused({verb, folder}, folder,
                  "is the folder of a plan of '" + bench.run + "'; give " + bench.run + "@" + id);
    check_refused({verb, folder + "/"}, folder + "/", "is the folder of a plan");
  }
}

TEST_CASE("refused words: metrics that no cell has are refused with the nearest that they have") {
  const Run bench;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"table", bench.run}, {"compare", bench.run, bench.run}}) {
    std::vector<std::string> asked = words;
    asked.insert(asked.end(), {"--metric", "router_norm_ratio"});
    check_refused(asked, "--metric", "unknown metric of these cells 'router_norm_ratio'");
  }
}

TEST_CASE("refused words: seeds beyond what a run takes are told at --seeds") {
  const Run bench;
  check_refused({"run", bench.file, "--out", bench.run, "--seeds", "2..2000000"}, "--seeds", "asks for");
}

TEST_CASE("refused words: an answer of check is a list of checks with all fields") {
  const Run bench;
  const fs::path file = bench.folder.path() / "checks.json";
  const auto refused = [&](const char* text, const std::string& below, const std::string& message) {
    std::ofstream(file) << text;
    check_refused({"report", bench.run, "--checks", file.string()}, file.string() + below, message);
  };
  for (const char* text : {"{}", "null", "[]", "3"})
    refused(text, "", "needs an answer of check --json: a list");
  refused("[1]", ": [0]", "got 1, needs a check: an object");
  refused(R"([{"id": "a"}])", ": [0].relation", "missing");
  refused(R"([{"relation": 1}])", ": [0].relation", "got 1, needs a text");
}

}  // namespace moelab::refused_words_test
