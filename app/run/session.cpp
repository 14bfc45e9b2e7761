#include "app/run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "app/run/cost.h"
#include "app/run/scheduler.h"
#include "app/store/provenance.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=:+,%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

namespace {

void report_failure(const Cell& cell, const std::string& message) {
  std::string place = fmt::format("arm {}", cell.arm);
  for (const auto& [path, value] : cell.point) place += fmt::format(", {} = {}", path, value.text());
  std::cerr << fmt::format("moelab: cell {} ({}, seed {}) failed: {}\n", cell.id, place, cell.seed, message);
}

/// Estimates the remaining time of a session from its own cells, as `moelab plan` does from all cells. The
/// threads that run cells call record(). The thread that shows the time calls seconds().
class TimeLeft {
 public:
  TimeLeft(const Scenario& scenario, std::vector<const Cell*> missing, int threads)
      : scenario_(scenario), missing_(std::move(missing)), threads_(threads) {}

  void record(const Cell& cell, const CellResult& result, double seconds) {
    const std::lock_guard lock(mutex_);
    recorded_.push_back({cell.id, state_name(result.state), seconds});
  }

  /// Returns the time left, minus the share `partial` of the running cells. Empty before kLearningTime and
  /// before the first finished cell.
  std::optional<double> seconds(double partial) {
    if (std::chrono::steady_clock::now() - start_ < kLearningTime) return std::nullopt;
    if (!times_) times_.emplace(scenario_);
    learn();
    if (times_->learned() == 0) return std::nullopt;
    return seconds_on_threads(left_, threads_, partial);
  }

 private:
  /// Shorter sessions end before the model of times is useful.
  static constexpr std::chrono::seconds kLearningTime{3};
  struct Timed {
    std::string cell, state;
    double seconds = 0;
  };

  void learn() {
    std::vector<Timed> fresh;
    {
      const std::lock_guard lock(mutex_);
      fresh.swap(recorded_);
    }
    if (fresh.empty()) return;
    std::unordered_set<std::string> finished;
    for (const Timed& timed : fresh) {
      times_->learn(timed.cell, timed.state, timed.seconds);
      finished.insert(timed.cell);
    }
    times_->fit();
    std::erase_if(missing_, [&](const Cell* cell) { return finished.contains(cell->id); });
    left_.clear();
    for (const Cell* cell : missing_) left_.push_back(times_->of(*cell).seconds);
  }

  const Scenario& scenario_;
  std::vector<const Cell*> missing_;  ///< missing cells that have not been learned from
  int threads_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;             ///< guards recorded_
  std::vector<Timed> recorded_;  ///< recorded cells that have not been learned from
  std::optional<CellTimes> times_;
  std::vector<double> left_;  ///< seconds of the missing cells
};

/// Makes the scenario's plan the one that the directory shows, and returns its id. A read-only directory
/// stays unchanged if there is nothing to run.
std::string shown_by(const Scenario& scenario, const SessionOptions& options, bool is_done) {
  const std::filesystem::path& directory = options.directory;
  if (is_done && is_read_only(directory)) return plan_id_in(directory, scenario);
  const KeptPlan kept = keep_plan(directory, scenario);
  if (options.tells_former_plan && !kept.before.empty() && kept.before != kept.id) {
    std::cerr << fmt::format(
        "moelab: note: {} showed plan {}, and shows {} from now on; --plan {} asks for the "
        "former\n",
        directory.string(), kept.before, kept.id, kept.before);
  }
  return kept.id;
}

/// Whether a file of a recorded array is lost.
bool lacks_array(const std::filesystem::path& directory, const Record& record) {
  return std::any_of(record.arrays.begin(), record.arrays.end(), [&](const auto& array) {
    return !array_problem(array_file(directory, record.cell, array.first), array.second).empty();
  });
}

/// Returns a runner that runs only cells that no other process runs or has recorded. The other cells count as
/// interrupted. For cells in `lost` only the arrays are missing, so they run although they are recorded. The
/// arguments must outlive the returned runner.
CellRunner leased(Leases& leases, const CellRunner& runner, const Records& lost) {
  return [&](const Cell& cell, const CellProgress& progress) {
    CellResult result;
    result.state = CellResult::State::interrupted;
    if (!leases.take(cell.id, lost.contains(cell.id))) return result;
    result = runner(cell, progress);
    if (result.state == CellResult::State::interrupted) leases.give_back(cell.id);
    return result;
  };
}

/// Runs cells. Cells in `lost` (with their records) run only for their arrays. Returns whether --fail-fast
/// ended the session.
bool run_missing(const std::vector<const Cell*>& missing, int already, const Scenario& scenario,
                 const SessionOptions& options, const CellRunner& runner, const std::atomic<bool>& stop,
                 std::atomic<bool>& asked_to_stop, const Records& lost, Leases* leases,
                 SessionOutcome& outcome) {
  StoreWriter writer(options.directory);
  Json provenance =
      provenance_json({options.arguments, options.threads, writer.journal_name(), outcome.plan}, scenario);
  write_provenance(options.directory, provenance);
  ProgressReporter reporter(already);
  TimeLeft left(scenario, missing, options.threads);
  const CellSink sink = [&](const Cell& cell, const CellResult& result, double seconds) {
    if (const auto recorded = lost.find(cell.id); recorded == lost.end()) {
      writer.write(cell.id, result, seconds);
    } else if (const std::string difference = restore_arrays(options.directory, recorded->second, result);
               !difference.empty()) {
      ++outcome.not_restored;
      reporter.finish();
      std::cerr << fmt::format(
          "moelab: cell {} lost an array, and has other numbers when it is run again (recorded and now: {}); "
          "the record stays\n",
          cell.id, difference);
    }
    if (leases != nullptr) leases->give_back(cell.id);
    if (options.view != nullptr) options.view->record(cell, result);
    left.record(cell, result, seconds);
  };
  if (options.view != nullptr) options.view->begin(scenario, options.directory);
  BatchOptions schedule;
  schedule.threads = options.threads;
  schedule.stop = &stop;
  schedule.fail_fast = options.fail_fast;
  schedule.watch = [&](const BatchProgress& progress) {
    if (!options.watch) {
      return reporter.show(
          progress, [&] { return left.seconds(progress.partial); },
          [&] { return options.view != nullptr ? options.view->text() : ""; });
    }
    if (options.watch({progress, already, left.seconds(progress.partial)})) asked_to_stop = true;
  };
  schedule.overdue = [&] {
    if (options.watch) return;
    reporter.finish();
    std::cerr << "moelab: interrupted; finished cells are kept, and the same command resumes" << std::endl;
    std::_Exit(kInterruptedStatus);
  };
  BatchProgress progress;
  try {
    progress = run_batch(run_order(scenario, missing),
                         leases != nullptr ? leased(*leases, runner, lost) : runner, sink, schedule);
  } catch (...) {
    reporter.finish();
    throw;
  }
  reporter.finish();
  add_end(provenance);
  write_provenance(options.directory, provenance);
  return options.fail_fast && progress.failed > 0;
}

/// Waits for the cells of other processes. Returns the records of all processes when
/// - a cell without a record can be taken, because the process that ran it has ended;
/// - no record is missing; or
/// - `must_stop` returns true.
Records wait_for_others(const Scenario& scenario, const SessionOptions& options, Leases& leases,
                        const std::function<bool()>& must_stop) {
  constexpr std::chrono::milliseconds kPoll{500}, kStep{50};
  for (;;) {
    Records records = read_records(options.directory, RecordPart::state);
    for (const Cell* cell : missing_cells(scenario, records, options.share)) {
      if (!leases.take(cell->id)) continue;
      leases.give_back(cell->id);
      return records;
    }
    if (missing_cells(scenario, records, options.share).empty()) return records;
    for (auto waited = kStep; waited <= kPoll; waited += kStep) {
      if (must_stop()) return records;
      std::this_thread::sleep_for(kStep);
    }
  }
}

}  // namespace

std::filesystem::path default_run_directory(const Scenario& scenario) {
  return std::filesystem::path("runs") /
         (scenario.profile.empty() ? scenario.name : scenario.name + "-" + scenario.profile);
}

Share read_share(const std::string& text) {
  const std::vector<int> numbers = whole_numbers(text, "/");
  if (numbers.size() == 2 && numbers[0] < numbers[1]) return {numbers[0], numbers[1]};
  throw UserError("--share", fmt::format("got '{}', needs I/N with I of 0 … N − 1, such as 3/20", text));
}

std::vector<const Cell*> missing_cells(const Scenario& scenario, const Records& records, const Share& share) {
  std::vector<const Cell*> missing;
  std::unordered_set<std::string_view> seen;
  seen.reserve(scenario.cells.size());
  int place = 0;
  for (const Cell& cell : scenario.cells) {
    if (!seen.insert(cell.id).second || place++ % share.count != share.index) continue;
    if (!records.contains(cell.id)) missing.push_back(&cell);
  }
  return missing;
}

std::vector<const Cell*> run_order(const Scenario& scenario, std::vector<const Cell*> cells) {
  // By cell id: the index of the point within its arm, and the index of the arm.
  std::unordered_map<std::string, std::pair<int, int>> places;
  int point = 0, arm = 0;
  const Cell* last = nullptr;
  for (const Cell& cell : scenario.cells) {
    if (last != nullptr && cell.arm != last->arm) {
      ++arm;
      point = 0;
    } else if (last != nullptr && cell.point != last->point) {
      ++point;
    }
    last = &cell;
    places.try_emplace(cell.id, point, arm);
  }
  const auto place = [&](const Cell* cell) { return std::pair(cell->seed, places.at(cell->id)); };
  std::stable_sort(cells.begin(), cells.end(),
                   [&](const Cell* left, const Cell* right) { return place(left) < place(right); });
  return cells;
}

SessionOptions next_round(SessionOptions options) {
  options.retry_failed = false;  // a failed cell fails again
  options.restores_arrays = false;
  return options;
}

SessionOutcome run_session(const Scenario& scenario, const SessionOptions& options,
                           const CellRunner& runner) {
  check_run_directory(options.directory, scenario.name);
  Records before = read_records(options.directory, RecordPart::state);
  if (options.admit) options.admit(before);
  if (options.retry_failed)
    std::erase_if(before, [](const auto& record) { return record.second.state == "failed"; });
  Records lost;
  for (const Cell* cell : missing_cells(scenario, {}, options.share)) {
    const auto record = before.find(cell->id);
    if (options.restores_arrays && record != before.end() && lacks_array(options.directory, record->second))
      lost.insert(*record);
  }
  if (!lost.empty()) {
    Records whole = read_records(options.directory);
    for (auto& [id, record] : lost) {
      before.erase(id);
      record = std::move(whole.at(id));
    }
    std::cerr << fmt::format("moelab: note: cells whose arrays are lost are run again: {}\n", lost.size());
  }
  std::vector<const Cell*> missing = missing_cells(scenario, before, options.share);
  // Counts only cells of this share, because the progress line describes this process.
  int already = static_cast<int>(missing_cells(scenario, {}, options.share).size() - missing.size());

  std::optional<InterruptGuard> guard;
  if (!options.watch) guard.emplace();
  std::atomic<bool> asked_to_stop{false};
  const std::atomic<bool>& stop = guard ? guard->flag() : asked_to_stop;
  SessionOutcome outcome;
  outcome.plan = shown_by(scenario, options, missing.empty());
  std::optional<Leases> leases;
  if (options.leases && !missing.empty()) leases.emplace(options.directory, options.retry_failed);
  while (!missing.empty()) {
    outcome.stopped = run_missing(missing, already, scenario, options, runner, stop, asked_to_stop, lost,
                                  leases ? &*leases : nullptr, outcome);
    if (!leases || outcome.stopped || stop) break;
    before = wait_for_others(scenario, options, *leases, [&] { return stop.load(); });
    lost.clear();
    missing = missing_cells(scenario, before, options.share);
    already = static_cast<int>(missing_cells(scenario, {}, options.share).size() - missing.size());
    if (stop) break;
  }
  outcome.interrupted = stop;
  const Records records = read_records(options.directory, RecordPart::state);
  const std::vector<const Cell*> planned = missing_cells(scenario, {});
  int recorded = 0;
  outcome.all_diverged = !planned.empty();
  for (const Cell* cell : planned) {
    const auto record = records.find(cell->id);
    if (record == records.end() || record->second.state != "diverged") outcome.all_diverged = false;
    if (record == records.end()) continue;
    ++recorded;
    if (record->second.state != "failed") continue;
    ++outcome.failed;
    report_failure(*cell, record->second.message);
  }
  if ((outcome.interrupted && !options.watch) || outcome.stopped) {
    std::cerr << fmt::format("moelab: {} with {} of {} cells recorded; the same command resumes\n",
                             outcome.interrupted ? "interrupted" : "stopped at a failed cell", recorded,
                             planned.size());
  }
  return outcome;
}

}  // namespace moelab
