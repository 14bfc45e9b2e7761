#pragma once

/// A session is one start of `moelab run`. It finds the missing cells, runs them and records them.

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

/// Returns runs/<name>, or runs/<name>-<profile>.
std::filesystem::path default_run_directory(const Scenario& scenario);

/// The cells that one of several processes runs: those at positions index, index + count, … of the plan.
struct Share {
  int index = 0;
  int count = 1;
};

/// Parses a share. "3/20" is share 3 of the shares 0 … 19. Throws UserError.
Share read_share(const std::string& text);

/// The progress of a session.
struct SessionProgress {
  BatchProgress cells;                 ///< the cells of this session
  int already = 0;                     ///< cells that earlier sessions recorded
  std::optional<double> seconds_left;  ///< empty until cell times have been learned
};

/// Displays a running session, in addition to the progress line.
class SessionView {
 public:
  virtual ~SessionView() = default;
  /// Called before the session runs its cells.
  virtual void begin(const Scenario& scenario, const std::filesystem::path& directory) = 0;
  /// Called by the threads that run cells, one at a time.
  virtual void record(const Cell& cell, const CellResult& result) = 0;
  /// Returns the current lines. Called on the calling thread while other threads record cells.
  virtual std::string text() = 0;
};

struct SessionOptions {
  std::filesystem::path directory = {};
  int threads = 1;
  std::vector<std::string> arguments = {};  ///< stored in the provenance
  Share share = {};
  bool retry_failed = false;    ///< cells recorded as failed count as missing
  bool restores_arrays = true;  ///< cells whose saved arrays are lost count as missing
  /// Takes cells by leases (app/store/journal.h). The session ends when the cells of the other processes are
  /// recorded too.
  bool leases = false;
  bool tells_former_plan = true;  ///< prints a note if the directory showed another plan before
  SessionView* view = nullptr;    ///< null if nobody watches the session
  bool fail_fast = false;         ///< the first failed cell ends the session
  std::function<void(const Records&)> admit = {};  ///< throws if the missing cells must not run
  /// Replaces the progress line and the ending signals, for a program that embeds the session. Called on the
  /// calling thread several times per second. Returns true to interrupt the session.
  std::function<bool(const SessionProgress&)> watch = {};
};

/// Returns the planned cells of a share without a record. Each content occurs once, because two arms may have
/// the same cell.
std::vector<const Cell*> missing_cells(const Scenario& scenario, const Records& records,
                                       const Share& share = {});

/// Returns `cells` in the order in which a session runs them: by seed, then by sweep point, then by arm. So
/// the first finished cells are pairs that cover every arm and point.
std::vector<const Cell*> run_order(const Scenario& scenario, std::vector<const Cell*> cells);

/// The options of the next session of a run. It neither runs failed cells again nor reads all saved arrays
/// again.
SessionOptions next_round(SessionOptions options);

struct SessionOutcome {
  std::string plan;  ///< id of the scenario's plan in the directory
  bool interrupted = false;
  bool stopped = false;       ///< stopped by fail_fast
  int failed = 0;             ///< planned cells with state failed, from all sessions
  int not_restored = 0;       ///< cells whose lost arrays could not be restored by another run
  bool all_diverged = false;  ///< every planned cell is recorded as diverged
};

/// Runs the missing cells of a scenario and records them.
///
/// - Checks the directory and its journals.
/// - Writes the plan, and provenance.json if cells are missing.
/// - Runs the missing cells with `runner`, in run_order(), and records each one.
/// - Runs cells again if their recorded arrays are lost, and compares the numbers with the records. The
///   records stay.
///
/// Throws UserError before it writes anything. Throws EnvironmentError when the disk refuses.
SessionOutcome run_session(const Scenario& scenario, const SessionOptions& options, const CellRunner& runner);

// Shell quoting

/// Returns `word` as one word of a sh command, with quotes if needed. sh reads back the same bytes, including
/// line breaks.
std::string shell_word(const std::string& word);

}  // namespace moelab
