#pragma once

/// Runs cells on several threads, one cell per thread, and passes every result to one writer.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/run/cell.h"

namespace moelab {

/// Computes a cell. The program uses run_cell.
using CellRunner = std::function<CellResult(const Cell&, const CellProgress&)>;
/// Receives a finished cell and its seconds of work. Two threads never call it at the same time.
using CellSink = std::function<void(const Cell&, const CellResult&, double)>;

/// The progress of a batch. `finished` counts recorded cells. `partial` is the sum of the running cells'
/// shares.
struct BatchProgress {
  int total = 0;
  int finished = 0;
  int failed = 0;
  int diverged = 0;
  double partial = 0;
};

struct BatchOptions {
  int threads = 1;
  /// Set by another thread or a signal handler to stop the running cells and start no others.
  const std::atomic<bool>* stop = nullptr;
  /// The first failed cell also stops the running cells.
  bool fail_fast = false;
  /// Called on the calling thread about five times per second.
  std::function<void(const BatchProgress&)> watch = {};
  /// Called on the calling thread if cells still run kGraceSeconds after `stop` was set. The sink is idle
  /// then. The callback may end the process. If it returns, the wait continues.
  std::function<void()> overdue = {};
};

/// The time in seconds within which a running cell should stop.
constexpr double kGraceSeconds = 1.5;

/// Runs `cells` in their order. Interrupted cells are not passed to the sink. A cell that throws counts as
/// failed, with the exception's text as its message.
///
/// Exceptions of the sink, EnvironmentError and exhausted memory stop the batch. The function rethrows them
/// after all threads have ended. If the system starts fewer threads than requested, these run all cells, and
/// a note says so. Throws EnvironmentError if the system starts none.
BatchProgress run_batch(const std::vector<const Cell*>& cells, const CellRunner& runner, const CellSink& sink,
                        const BatchOptions& options);

// Signals: Ctrl-C (SIGINT), SIGTERM, SIGHUP and SIGQUIT as a flag

/// The exit status of a command that was interrupted and can be resumed.
constexpr int kInterruptedStatus = 130;

constexpr std::array<int, 4> kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/// Makes the ending signals end the process immediately with kInterruptedStatus. Use it before and after the
/// cells, where a run can stop at any moment. Signals that were ignored stay ignored (nohup, a script's job
/// in the background).
void exit_when_interrupted();

/// During its lifetime, the first ending signal sets the flag. The second one ends the process immediately
/// with kInterruptedStatus. Signals that were ignored stay ignored. Only one guard may exist at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  const std::atomic<bool>& flag() const;

 private:
  std::array<struct sigaction, kEndingSignals.size()> old_{};
};

// Progress line: cells done, percentage, elapsed time, time left, speed

/// Formats a duration as "3:07" or "2:05:09".
std::string clock_text(double seconds);

/// Returns "cells 3/12  31%  elapsed 1:02  left 2:15  4.2 cells/min". The counts cover the whole plan,
/// including `already` cells of earlier sessions. The speed covers this session only. Without `seconds_left`,
/// the time left is computed from the speed, as if all cells took equally long.
std::string progress_line(const BatchProgress& progress, int already, double elapsed_seconds,
                          double cells_per_second, std::optional<double> seconds_left = std::nullopt);

/// Returns a bar of `width` characters for a share in [0, 1]: "━━━━╌╌╌╌".
std::string progress_bar(double share, std::size_t width);

/// Cuts a line to `width` characters at the end of a clause or else of a word, and marks the cut with "…".
std::string cut_line(const std::string& line, std::size_t width);

/// Whether a descriptor is a terminal that understands control characters.
bool is_live_terminal(int descriptor);

/// The size of a terminal in characters.
struct TerminalSize {
  std::size_t columns, rows;  ///< 0 rows are unknown ones
};
/// The size of the terminal at a descriptor. No value if it is none, or does not tell its columns.
std::optional<TerminalSize> terminal_size(int descriptor);

/// Whether the user wants colours: NO_COLOR is not set (no-color.org).
bool wants_colours();

/// Shows progress on stderr. A terminal gets a bar with a live line, and further lines below it. Other
/// outputs get a plain line every 30 s. The bar has a colour unless NO_COLOR is set. Several threads may call
/// it.
class ProgressReporter {
 public:
  explicit ProgressReporter(int already);
  /// Calls `seconds_left` only if a line is shown. Calls `more`, which gives the lines below, only on a
  /// terminal.
  void show(
      const BatchProgress& progress, const std::function<std::optional<double>()>& seconds_left,
      const std::function<std::string()>& more = [] { return std::string(); });
  /// Clears the live lines, so that other output starts on an empty line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  double recent_speed(double work_done, double elapsed);

  std::mutex mutex_;
  int already_;
  bool live_;
  bool shown_ = false;
  std::size_t lines_below_ = 0;  ///< lines below the live line
  Clock::time_point start_ = Clock::now();
  double last_plain_ = 0;
  double mark_time_ = 0;  ///< start of the time window for the speed
  double mark_work_ = 0;
  double speed_ = 0;
};

}  // namespace moelab
