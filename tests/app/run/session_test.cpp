#include "app/run/session.h"

#include <doctest/doctest.h>

#include <csignal>
#include <mutex>
#include <set>
#include <thread>

#include "app/run/results.h"
#include "app/store/export.h"
#include "sim/base/error.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::session_test {
namespace {

namespace fs = std::filesystem;

CellResult run_quickly(const Cell& cell, const CellProgress&) {
  return pretend_run(cell);
}

std::string exported(const fs::path& directory, bool trace = false) {
  return export_csv(load_results(directory), trace, {"test_nmse_top1"});
}

}  // namespace

TEST_CASE("session: the export is the same for any number of threads and any order of completion") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  run_session(scenario, {folder.path() / "one", 1, {}}, run_quickly);
  // The earlier a cell starts, the later it ends: completion is in another order than the plan.
  std::atomic<int> started{0};
  run_session(scenario, {folder.path() / "four", 4, {}}, [&](const Cell& cell, const CellProgress&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40 - 5 * started++));
    return pretend_run(cell);
  });
  CHECK(exported(folder.path() / "one") == exported(folder.path() / "four"));
  CHECK(exported(folder.path() / "one", true) == exported(folder.path() / "four", true));
}

TEST_CASE("session: cells run seed by seed, all arms of a sweep point together") {
  const Scenario scenario = small_scenario();
  const std::vector<std::string> order = {"learned10s0", "frozen10s0", "learned20s0", "frozen20s0",
                                          "learned10s1", "frozen10s1", "learned20s1", "frozen20s1"};
  const TemporaryFolder folder;
  std::vector<std::string> ran;
  run_session(scenario, {folder.path() / "run", 1, {}}, [&](const Cell& cell, const CellProgress&) {
    ran.push_back(cell.id);
    return pretend_run(cell);
  });
  CHECK(ran == order);
  CHECK(run_order(scenario, {&scenario.cells[7], &scenario.cells[1], &scenario.cells[2]}) ==
        std::vector<const Cell*>{&scenario.cells[2], &scenario.cells[1], &scenario.cells[7]});
}

TEST_CASE("session: says whether every planned cell diverged, whoever ran it") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  const auto run = [&](const std::string& name, const Share& share, const std::string& finite) {
    SessionOptions options = {.directory = folder.path() / name};
    options.share = share;
    return run_session(scenario, options, [&](const Cell& cell, const CellProgress&) {
      CellResult result = pretend_run(cell);
      if (cell.id != finite) result.state = CellResult::State::diverged;
      return result;
    });
  };
  CHECK(run("all", {}, "none").all_diverged);
  CHECK(run("all", {}, "none").all_diverged);  // of an earlier session
  CHECK_FALSE(run("one", {}, scenario.cells[5].id).all_diverged);
  CHECK_FALSE(run("shares", {0, 2}, "none").all_diverged);  // the other share may do better
  CHECK(run("shares", {1, 2}, "none").all_diverged);
}

TEST_CASE("session: an interrupted run resumes with the missing cells alone, to the same export") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  run_session(scenario, {folder.path() / "whole", 1, {}}, run_quickly);
  std::signal(SIGINT, SIG_DFL);  // a job in a script's background starts with it ignored

  int count = 0;
  const SessionOutcome first = run_session(scenario, {folder.path() / "parts", 1, {}},
                                           [&](const Cell& cell, const CellProgress& progress) {
                                             if (++count <= 3) return pretend_run(cell);
                                             std::raise(SIGINT);
                                             CHECK(progress(0.1));
                                             CellResult result;
                                             result.state = CellResult::State::interrupted;
                                             return result;
                                           });
  CHECK(first.interrupted);
  CHECK(read_records(folder.path() / "parts").size() == 3);

  std::set<std::string> again;
  const SessionOutcome second =
      run_session(scenario, {folder.path() / "parts", 1, {}}, [&](const Cell& cell, const CellProgress&) {
        again.insert(cell.id);
        return pretend_run(cell);
      });
  CHECK_FALSE(second.interrupted);
  CHECK(again.size() == 5);
  CHECK_FALSE(again.contains(scenario.cells[0].id));
  CHECK(exported(folder.path() / "whole") == exported(folder.path() / "parts"));

  const Json provenance = read_json_file(folder.path() / "parts/provenance.json");
  CHECK(provenance.at("earlier").size() == 1);
}

TEST_CASE("session: a watcher takes the place of signals, ends the session, and sees how far it is") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  SessionOptions options{folder.path() / "run", 1, {}};
  int most_finished = 0;
  options.watch = [&](const SessionProgress& progress) {
    CHECK(progress.cells.total + progress.already == 8);
    most_finished = std::max(most_finished, progress.cells.finished);
    return progress.cells.finished >= 2;
  };
  const CellRunner slow = [](const Cell& cell, const CellProgress& progress) {
    for (int i = 0; i < 100; ++i) {
      if (progress(i / 100.0)) return CellResult{CellResult::State::interrupted, {}, {}, {}, {}};
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return pretend_run(cell);
  };
  struct sigaction before {
  }, during{};
  ::sigaction(SIGINT, nullptr, &before);
  const SessionOutcome outcome = run_session(scenario, options, slow);
  ::sigaction(SIGINT, nullptr, &during);
  const bool is_kept = before.sa_handler == during.sa_handler;
  CHECK(is_kept);
  CHECK(outcome.interrupted);
  CHECK(most_finished >= 2);
  CHECK(most_finished < 8);
  options.watch = [](const SessionProgress&) { return false; };
  CHECK_FALSE(run_session(scenario, options, run_quickly).interrupted);
  run_session(scenario, {folder.path() / "whole", 1, {}}, run_quickly);
  CHECK(exported(folder.path() / "run") == exported(folder.path() / "whole"));
}

TEST_CASE("session: failed and diverged cells are results that are not run again") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  const CellRunner runner = [&](const Cell& cell, const CellProgress&) {
    CellResult result = pretend_run(cell);
    if (cell.id == scenario.cells[1].id) result.state = CellResult::State::failed;
    if (cell.id == scenario.cells[2].id) result.state = CellResult::State::diverged;
    return result;
  };
  CHECK(run_session(scenario, {folder.path() / "run", 2, {}}, runner).failed == 1);
  const CellRunner never = [](const Cell&, const CellProgress&) -> CellResult {
    throw std::logic_error("run twice");
  };
  CHECK(run_session(scenario, {folder.path() / "run", 2, {}}, never).failed == 1);
  const RunResults results = load_results(folder.path() / "run");
  CHECK(results.table.rows[1].state == "failed");
  CHECK(results.table.rows[2].state == "diverged");
}

TEST_CASE("session: failed cells are run again when asked, and the new record counts") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  run_session(scenario, {.directory = folder.path() / "whole"}, run_quickly);
  const CellRunner failing = [&](const Cell& cell, const CellProgress&) -> CellResult {
    if (cell.id == scenario.cells[1].id || cell.id == scenario.cells[6].id)
      throw std::runtime_error("broken");
    return pretend_run(cell);
  };
  SessionOptions options = {.directory = folder.path() / "run"};
  CHECK(run_session(scenario, options, failing).failed == 2);
  CHECK(exported(options.directory) != exported(folder.path() / "whole"));

  std::set<std::string> again;
  const CellRunner repaired = [&](const Cell& cell, const CellProgress&) {
    again.insert(cell.id);
    return pretend_run(cell);
  };
  options.retry_failed = true;
  CHECK(run_session(scenario, options, repaired).failed == 0);
  CHECK(again == std::set<std::string>{scenario.cells[1].id, scenario.cells[6].id});
  CHECK(exported(options.directory) == exported(folder.path() / "whole"));
  CHECK(exported(options.directory, true) == exported(folder.path() / "whole", true));
  again.clear();
  run_session(scenario, options, repaired);
  CHECK(again.empty());
}

TEST_CASE("session: with fail_fast the first failure ends it; what finished is kept") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  SessionOptions options = {.directory = folder.path() / "run", .fail_fast = true};
  const CellRunner failing = [&](const Cell& cell, const CellProgress&) -> CellResult {
    if (cell.id == run_order(scenario, missing_cells(scenario, {}))[2]->id)
      throw std::runtime_error("broken");
    return pretend_run(cell);
  };
  const SessionOutcome stopped = run_session(scenario, options, failing);
  CHECK(stopped.stopped);
  CHECK_FALSE(stopped.interrupted);
  CHECK(stopped.failed == 1);
  CHECK(read_records(options.directory).size() == 3);
  // The failure of an earlier session stops nothing.
  const SessionOutcome second = run_session(scenario, options, run_quickly);
  CHECK_FALSE(second.stopped);
  CHECK(second.failed == 1);
  CHECK(read_records(options.directory).size() == scenario.cells.size());
}

TEST_CASE("session: arms that share a cell share its run") {
  const TemporaryFolder folder;
  Scenario scenario = small_scenario();
  scenario.cells[4].id = scenario.cells[0].id;
  int runs = 0;
  run_session(scenario, {folder.path() / "run", 1, {}}, [&](const Cell& cell, const CellProgress&) {
    ++runs;
    return pretend_run(cell);
  });
  CHECK(runs == 7);
  const RunResults results = load_results(folder.path() / "run");
  CHECK(results.table.rows[4].state == "done");
  CHECK(results.table.rows[4].arm == "frozen");
  CHECK(results.table.rows[4].metrics == results.table.rows[0].metrics);
}

TEST_CASE("session: a folder of another scenario is left as it is") {
  const TemporaryFolder folder;
  run_session(small_scenario("first"), {folder.path() / "run", 1, {}}, run_quickly);
  const std::string before = file_text(folder.path() / "run/plan.json");
  CHECK_THROWS_AS(run_session(small_scenario("second"), {folder.path() / "run", 1, {}}, run_quickly),
                  UserError);
  CHECK(file_text(folder.path() / "run/plan.json") == before);
}

TEST_CASE("session: cells whose arrays are lost are run again, and their records stay") {
  const TemporaryFolder folder;
  const Scenario scenario = small_scenario();
  const SessionOptions options = {.directory = folder.path() / "run"};
  double shift = 0;
  int runs = 0;
  const CellRunner saving = [&](const Cell& cell, const CellProgress&) {
    ++runs;
    CellResult result = pretend_run(cell);
    result.metrics["test_nmse_top1"] += shift;
    result.arrays = {{"router_weight", {1, 2}, {0.5, 0.25}, {}}};
    return result;
  };
  CHECK(run_session(scenario, options, saving).not_restored == 0);
  const std::string table = exported(options.directory);
  const auto lose = [&](std::size_t cell) {
    fs::remove(array_file(options.directory, scenario.cells[cell].id, "router_weight"));
  };
  lose(2);
  lose(5);
  runs = 0;
  CHECK(run_session(scenario, options, saving).not_restored == 0);
  CHECK(runs == 2);
  CHECK(run_session(scenario, options, saving).not_restored == 0);
  CHECK(runs == 2);
  lose(3);
  shift = 1e-15;  // another build, say
  CHECK(run_session(scenario, options, saving).not_restored == 1);
  CHECK_FALSE(fs::exists(array_file(options.directory, scenario.cells[3].id, "router_weight")));
  CHECK(exported(options.directory) == table);
}

TEST_CASE("session: the default folder carries the profile") {
  Scenario scenario = small_scenario("fig");
  CHECK(default_run_directory(scenario) == fs::path("runs/fig"));
  scenario.profile = "quick";
  CHECK(default_run_directory(scenario) == fs::path("runs/fig-quick"));
}

}  // namespace moelab::session_test
