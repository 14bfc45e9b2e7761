#include "app/run/scheduler.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "sim/base/error.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::scheduler_test {
namespace {

std::vector<const Cell*> pointers(const Scenario& scenario) {
  std::vector<const Cell*> cells;
  for (const Cell& cell : scenario.cells) cells.push_back(&cell);
  return cells;
}

/// Runs until told to stop.
CellResult wait_for_stop(const CellProgress& progress) {
  while (!progress(0.5)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CellResult result;
  result.state = CellResult::State::interrupted;
  return result;
}

}  // namespace

TEST_CASE("scheduler: every cell once, whatever the number of threads") {
  const Scenario scenario = small_scenario();
  for (const int threads : {1, 2, 3, 100}) {
    std::multiset<std::string> seen;
    const BatchProgress progress = run_batch(
        pointers(scenario), [](const Cell& cell, const CellProgress&) { return pretend_run(cell); },
        [&](const Cell& cell, const CellResult& result, double) {
          CHECK(result.metrics == pretend_run(cell).metrics);
          seen.insert(cell.id);
        },
        {.threads = threads});
    CHECK(progress.finished == 8);
    CHECK(seen.size() == 8);
    CHECK(std::set<std::string>(seen.begin(), seen.end()).size() == 8);
  }
  CHECK(run_batch({}, {}, {}, {.threads = 2}).finished == 0);
}

TEST_CASE("scheduler: a cell that throws is failed, and the batch goes on") {
  const Scenario scenario = small_scenario();
  std::string message;
  const BatchProgress progress = run_batch(
      pointers(scenario),
      [&](const Cell& cell, const CellProgress&) -> CellResult {
        if (cell.id == scenario.cells[2].id) throw std::runtime_error("no such thing");
        return pretend_run(cell);
      },
      [&](const Cell&, const CellResult& result, double) {
        if (result.state == CellResult::State::failed) message = result.message;
      },
      {.threads = 2});
  CHECK(progress.finished == 8);
  CHECK(progress.failed == 1);
  CHECK(message == "no such thing");
}

TEST_CASE("scheduler: a stop abandons running cells, which are not recorded") {
  const Scenario scenario = small_scenario();
  std::atomic<bool> stop{false};
  std::set<std::string> recorded;
  const BatchProgress progress = run_batch(
      pointers(scenario),
      [&](const Cell& cell, const CellProgress& report) {
        if (cell.id == scenario.cells[0].id) return pretend_run(cell);
        stop = true;
        return wait_for_stop(report);
      },
      [&](const Cell& cell, const CellResult&, double) { recorded.insert(cell.id); },
      {.threads = 1, .stop = &stop});
  CHECK(progress.finished == 1);
  CHECK(recorded == std::set<std::string>{scenario.cells[0].id});
}

TEST_CASE("scheduler: the caller hears of cells that do not stop") {
  const Scenario scenario = small_scenario();
  std::atomic<bool> stop{true};
  std::atomic<bool> started{false}, told{false};
  stop = false;
  run_batch(
      pointers(scenario),
      [&](const Cell&, const CellProgress&) {
        started = true;
        stop = true;
        while (!told) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CellResult result;
        result.state = CellResult::State::interrupted;
        return result;
      },
      [](const Cell&, const CellResult&, double) {},
      {.threads = 1, .stop = &stop, .overdue = [&] { told = true; }});
  CHECK(started);
  CHECK(told);
}

TEST_CASE("scheduler: a disk that refuses ends the batch; later results are not handed over") {
  const Scenario scenario = small_scenario();
  int calls = 0;
  const CellSink full_disk = [&](const Cell&, const CellResult&, double) {
    if (++calls == 2) throw EnvironmentError("disk full");
  };
  CHECK_THROWS_AS(
      run_batch(pointers(scenario), [](const Cell& cell, const CellProgress&) { return pretend_run(cell); },
                full_disk, {.threads = 2}),
      EnvironmentError);
  CHECK(calls == 2);
}

TEST_CASE("scheduler: exhausted memory is the environment's failure, not the cell's") {
  const Scenario scenario = small_scenario();
  CHECK_THROWS_AS(
      run_batch(
          pointers(scenario), [](const Cell&, const CellProgress&) -> CellResult { throw std::bad_alloc(); },
          [](const Cell&, const CellResult&, double) {}, {.threads = 2}),
      EnvironmentError);
}

}  // namespace moelab::scheduler_test
