#include "app/run/session.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>

#include "app/run/interrupt.h"
#include "app/run/progress.h"
#include "app/run/provenance.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

void report_failure(const Cell& cell, const std::string& message) {
  std::string place = fmt::format("arm {}", cell.arm);
  for (const auto& [path, value] : cell.point) place += fmt::format(", {} = {}", path, value.dump());
  std::cerr << fmt::format("moelab: cell {} ({}, seed {}) failed: {}\n", cell.id, place, cell.seed, message);
}

/// Whether --fail-fast ended the session.
bool run_missing(const std::vector<const Cell*>& missing, int already, const Scenario& scenario,
                 const SessionOptions& options, const CellRunner& runner, const std::atomic<bool>& stop) {
  StoreWriter writer(options.directory);
  Json provenance = provenance_json({options.arguments, scenario.profile, options.threads,
                                     writer.journal_name(), scenario.files, scenario.document});
  write_provenance(options.directory, provenance);
  ProgressReporter reporter(already);
  const CellSink sink = [&](const Cell& cell, const CellResult& result, double seconds) {
    writer.write(cell.id, result, seconds);
  };
  BatchOptions schedule;
  schedule.threads = options.threads;
  schedule.stop = &stop;
  schedule.fail_fast = options.fail_fast;
  schedule.watch = [&](const BatchProgress& progress) { reporter.show(progress); };
  schedule.overdue = [&] {
    reporter.finish();
    std::cerr << "moelab: interrupted; finished cells are kept, and the same command resumes" << std::endl;
    std::_Exit(kInterruptedStatus);
  };
  BatchProgress progress;
  try {
    progress = run_batch(missing, runner, sink, schedule);
  } catch (...) {
    reporter.finish();
    throw;
  }
  reporter.finish();
  add_end(provenance);
  write_provenance(options.directory, provenance);
  return options.fail_fast && progress.failed > 0;
}

}  // namespace

std::filesystem::path default_run_directory(const Scenario& scenario) {
  return std::filesystem::path("runs") /
         (scenario.profile.empty() ? scenario.name : scenario.name + "-" + scenario.profile);
}

Share read_share(const std::string& text) {
  Share share;
  char after = 0;
  if (std::sscanf(text.c_str(), "%d/%d%c", &share.index, &share.count, &after) == 2 && share.index >= 0 &&
      share.index < share.count) {
    return share;
  }
  throw UserError("--share", fmt::format("got '{}', needs I/N with I of 0 … N − 1, such as 3/20", text));
}

std::vector<const Cell*> missing_cells(const Scenario& scenario, const Records& records, const Share& share) {
  std::vector<const Cell*> missing;
  std::set<std::string> seen;
  int place = 0;
  for (const Cell& cell : scenario.cells) {
    if (!seen.insert(cell.id).second || place++ % share.count != share.index) continue;
    if (!records.contains(cell.id)) missing.push_back(&cell);
  }
  return missing;
}

SessionOutcome run_session(const Scenario& scenario, const SessionOptions& options,
                           const CellRunner& runner) {
  check_run_directory(options.directory, scenario.name);
  Records before = read_records(options.directory, RecordPart::state);
  if (options.retry_failed)
    std::erase_if(before, [](const auto& record) { return record.second.state == "failed"; });
  const std::vector<const Cell*> missing = missing_cells(scenario, before, options.share);
  // Of the share's own cells: the progress line is about this process.
  const int already = static_cast<int>(missing_cells(scenario, {}, options.share).size() - missing.size());

  const InterruptGuard guard;
  replace_file(options.directory / "plan.json", plan_text(scenario));
  SessionOutcome outcome;
  if (!missing.empty())
    outcome.stopped = run_missing(missing, already, scenario, options, runner, guard.flag());
  outcome.interrupted = guard.flag();
  const Records records = read_records(options.directory, RecordPart::state);
  const std::vector<const Cell*> planned = missing_cells(scenario, {});
  int recorded = 0;
  for (const Cell* cell : planned) {
    const auto record = records.find(cell->id);
    if (record == records.end()) continue;
    ++recorded;
    if (record->second.state != "failed") continue;
    ++outcome.failed;
    report_failure(*cell, record->second.message);
  }
  if (outcome.interrupted || outcome.stopped) {
    std::cerr << fmt::format("moelab: {} with {} of {} cells recorded; the same command resumes\n",
                             outcome.interrupted ? "interrupted" : "stopped at a failed cell", recorded,
                             planned.size());
  }
  return outcome;
}

}  // namespace moelab
