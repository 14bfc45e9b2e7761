#pragma once

/// One start of `moelab run`: finds what is missing, runs it, keeps it.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/run/scheduler.h"
#include "app/store/journal.h"
#include "app/store/run_folder.h"
#include "app/store/store.h"

namespace moelab {

/// runs/<name>, with -<profile> appended.
std::filesystem::path default_run_directory(const Scenario& scenario);

/// Which of the planned cells one of several processes takes: those at places index, index + count, … of the
/// plan.
struct Share {
  int index = 0;
  int count = 1;
};

/// From "3/20": the share 3 of 0 … 19. Throws UserError.
Share read_share(const std::string& text);

/// How far a session is.
struct SessionProgress {
  BatchProgress cells;                 ///< of this session
  int already = 0;                     ///< cells recorded before
  std::optional<double> seconds_left;  ///< none until it has learned how long cells take
};

/// What shows how a session goes, beside the progress line of a terminal.
class SessionView {
 public:
  virtual ~SessionView() = default;
  /// Before the cells of a session are run.
  virtual void begin(const Scenario& scenario, const std::filesystem::path& directory) = 0;
  /// Of the threads that run cells, one at a time.
  virtual void record(const Cell& cell, const CellResult& result) = 0;
  /// Lines to show now; on the calling thread, while cells are recorded.
  virtual std::string text() = 0;
};

struct SessionOptions {
  std::filesystem::path directory = {};
  int threads = 1;
  std::vector<std::string> arguments = {};  ///< for the provenance
  Share share = {};
  bool retry_failed = false;  ///< cells recorded as failed are missing
  /// Cells are taken by leases (leases.h), and the session ends when those of other processes are recorded,
  /// too.
  bool leases = false;
  bool tells_former_plan = true;                   ///< notes where the directory showed another plan before
  SessionView* view = nullptr;                     ///< none unless a person looks on
  bool fail_fast = false;                          ///< the first cell that fails ends the session
  std::function<void(const Records&)> admit = {};  ///< throws where what is missing shall not be run
  /// Of a program that runs the session as a part of its own: takes the place of the progress line and of the
  /// ending signals. Called on the calling thread some times a second; true ends the session as interrupted.
  std::function<bool(const SessionProgress&)> watch = {};
};

/// The planned cells of a share without a record, each content once (two arms may have the same cell).
std::vector<const Cell*> missing_cells(const Scenario& scenario, const Records& records,
                                       const Share& share = {});

/// `cells` of the scenario in the order in which a session runs them: seed by seed, and of a seed every arm
/// at a sweep point before the next point. So the cells that are done early hold every arm and point, in
/// pairs.
std::vector<const Cell*> run_order(const Scenario& scenario, std::vector<const Cell*> cells);

struct SessionOutcome {
  std::string plan;  ///< the id of the scenario's plan in the directory
  bool interrupted = false;
  bool stopped = false;       ///< by fail_fast
  int failed = 0;             ///< planned cells whose state is failed, of this session or an earlier one
  int not_restored = 0;       ///< cells whose lost arrays another run did not bring back
  bool all_diverged = false;  ///< every planned cell is recorded as diverged
};

/// Checks the directory and its journals, writes the plan (and provenance.json when cells are missing), then
/// runs the missing cells with `runner`, in run_order(), and records them. Cells whose recorded arrays are
/// lost are run again: their numbers are held against their records, which stay. Throws UserError before
/// anything is written, EnvironmentError when the disk refuses.
SessionOutcome run_session(const Scenario& scenario, const SessionOptions& options, const CellRunner& runner);

// Texts in shell scripts and in commands that people copy.

/// `word` as one word of a command for sh, quoted where it has to be; sh reads back the same bytes, line
/// breaks included.
std::string shell_word(const std::string& word);

// A session's part of cells that several processes share by leases.

/// Runs the cells that no other process is at or has recorded; the others count as interrupted. Of cells in
/// `lost` the arrays alone are missing: they are run though they are recorded. The arguments outlive the
/// answer.
CellRunner leased(Leases& leases, const CellRunner& runner, const Records& lost);

/// Waits until a cell whose record is missing can be taken, since the process that was at it is no longer, or
/// none is missing, or `must_stop` says so. The records then, with those of the other processes.
Records wait_for_others(const Scenario& scenario, const SessionOptions& options, Leases& leases,
                        const std::function<bool()>& must_stop);

}  // namespace moelab
