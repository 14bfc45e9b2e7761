/// What one sees of a run while it goes on.

#include <doctest/doctest.h>

#include "tests/app/cli/tiny_run.h"
#include "tests/system/run_directory.h"
#include "tests/system/terminal.h"

namespace moelab::live_test {
namespace {

namespace fs = std::filesystem;

/// One claim that is open at any number of seeds, and some seconds of work.
Json slow() {
  Json scenario = tiny();
  scenario["train"]["steps"] = 60000;
  scenario["train"]["record_every"] = 30000;
  scenario["claims"] = Json::parse(R"([
    {"id": "same", "left": {"arm": "learned", "metric": "test_nmse_soft"}, "op": "~", "tolerance": 1e-9,
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}}])");
  return scenario;
}

}  // namespace

TEST_CASE(
    "live: a terminal shows the main metric and open claims while cells run, and then the results alone") {
  if (!has_terminals("live")) return;
  const Bench bench(slow());
  Terminal terminal({program(), "run", bench.file, "--out", bench.run, "--threads", "1"}, bench.folder.path(),
                    {{"TERM", "xterm"}});
  CHECK(wait_until(
      [&] { return terminal.shown().find("test_nmse_top1 so far: learned") != std::string::npos; }));
  CHECK(wait_until([&] {
    return terminal.shown().find("pairs, inconclusive so far, open at 2 of 2 points") != std::string::npos;
  }));
  // The lines are taken back before others come.
  CHECK(wait_until([&] { return terminal.shown().find("results in ") != std::string::npos; }));
  CHECK(terminal.shown().find("A\x1b[J") != std::string::npos);
  const std::string end = terminal.shown().substr(terminal.shown().rfind("\x1b[J"));
  CHECK(end.find("so far") == std::string::npos);
}

TEST_CASE("live: on a terminal a long answer goes through the pager, and a short one has colours") {
  if (!has_terminals("live")) return;
  const Bench bench(slow());
  const auto shown = [&](const std::vector<std::string>& words,
                         std::map<std::string, std::string> environment, const std::string& awaited) {
    environment["TERM"] = "xterm";
    std::vector<std::string> all = {program()};
    all.insert(all.end(), words.begin(), words.end());
    Terminal terminal(all, bench.folder.path(), environment);
    CHECK(wait_until([&] { return terminal.shown().find(awaited) != std::string::npos; }));
    return terminal.shown();
  };
  const std::string paged = shown({"list", "routers"}, {{"PAGER", "sed 's/^/page: /'"}}, "cosine");
  CHECK(paged.find("page: ") != std::string::npos);
  // A pager that does not exist loses nothing.
  shown({"list", "routers"}, {{"PAGER", "no_such_pager"}}, "cosine");
  // Other outputs are plain.
  const fs::path log = bench.folder.path() / "log";
  REQUIRE(call({"list", "routers"}, log) == 0);
  CHECK(file_text(log).find("\x1b[") == std::string::npos);
}

TEST_CASE("live: a page follows a run until it is complete") {
  const Bench bench(slow());
  const fs::path log = bench.folder.path() / "log", page = fs::path(bench.run) / "report.html";
  const std::vector<std::string> words = {"run", bench.file, "--out", bench.run, "--threads", "1"};
  const pid_t first = start(words, log);
  CHECK(wait_until([&] { return recorded_lines(bench.run) >= 1; }));
  ::kill(first, SIGKILL);
  wait_for(first);
  const pid_t follower = start({"report", bench.run, "--follow"}, log);
  CHECK(wait_until([&] { return fs::exists(page); }));
  CHECK(file_text(page).find(" missing") != std::string::npos);
  CHECK(call(words, log.string() + "2") == 0);
  CHECK(wait_for(follower) == 0);
  CHECK(file_text(page).find("8 cells: 8 done") != std::string::npos);
}

}  // namespace moelab::live_test
