#pragma once

/// Runs cells over threads, one cell per thread, and hands every result to one writer.

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

/// Computes a cell; run_cell in the program.
using CellRunner = std::function<CellResult(const Cell&, const CellProgress&)>;
/// Takes a finished cell and its seconds of work. Never called by two threads at once.
using CellSink = std::function<void(const Cell&, const CellResult&, double)>;

/// How far a batch of cells is. `finished` counts recorded cells, `partial` adds up the shares of running
/// ones.
struct BatchProgress {
  int total = 0;
  int finished = 0;
  int failed = 0;
  int diverged = 0;
  double partial = 0;
};

struct BatchOptions {
  int threads = 1;
  /// Set from outside (by a signal handler) to abandon the running cells and start no other.
  const std::atomic<bool>* stop = nullptr;
  /// The first failed cell abandons the running cells, too.
  bool fail_fast = false;
  /// Called on the calling thread about five times a second.
  std::function<void(const BatchProgress&)> watch = {};
  /// Called on the calling thread, with the sink idle, when running cells have not ended kGraceSeconds
  /// after `stop` was set. It may end the process; if it returns, the wait goes on.
  std::function<void()> overdue = {};
};

/// A running cell that is asked to stop should have stopped by then.
constexpr double kGraceSeconds = 1.5;

/// Runs `cells` in order of their list. Interrupted cells are not handed to the sink. A cell that
/// throws counts as failed, with what it threw as its message; exceptions of the sink, EnvironmentError and
/// exhausted memory abandon the batch and are thrown again here, after every thread has ended. Where the
/// system gives fewer threads than asked for, these run all cells, and a note says so; EnvironmentError where
/// it gives none.
BatchProgress run_batch(const std::vector<const Cell*>& cells, const CellRunner& runner, const CellSink& sink,
                        const BatchOptions& options);

// Ctrl-C and the other signals that ask for an end (SIGTERM, SIGHUP, SIGQUIT) as a flag.

/// The exit status of an interrupted command that can be resumed.
constexpr int kInterruptedStatus = 130;

constexpr std::array<int, 4> kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/// From now on the ending signals end the process at once with kInterruptedStatus: for the parts of a run
/// that can be left at any moment, before and after its cells. SIGHUP and SIGQUIT stay ignored where they are
/// (nohup).
void exit_when_interrupted();

/// While it lives, the first ending signal sets the flag and the second ends the process at once with
/// kInterruptedStatus; ignored ones as above. One at a time.
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

// The progress line: cells done, percentage, elapsed, time left, speed.

/// "3:07" or "2:05:09".
std::string clock_text(double seconds);

/// "cells 3/12  31%  elapsed 1:02  left 2:15  4.2 cells/min". The counts are of the whole plan, with
/// `already` cells recorded by earlier sessions; the speed comes from this session's work alone, and so does
/// the time left, as if all cells took equally long, where `seconds_left` does not tell it.
std::string progress_line(const BatchProgress& progress, int already, double elapsed_seconds,
                          double cells_per_second, std::optional<double> seconds_left = std::nullopt);

/// Whether stderr is a terminal on which lines can be replaced.
bool is_live_terminal();

/// Shows progress on stderr: a live line on a terminal, with others below it, a plain line every 30 s
/// elsewhere. No colours. Threads may call it.
class ProgressReporter {
 public:
  explicit ProgressReporter(int already);
  /// `seconds_left` is asked only where a line is shown, `more`, the lines below, on a terminal alone.
  void show(
      const BatchProgress& progress, const std::function<std::optional<double>()>& seconds_left,
      const std::function<std::string()>& more = [] { return std::string(); });
  /// Clears the live lines, so that other output starts on a clean one.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  double recent_speed(double work_done, double elapsed);

  std::mutex mutex_;
  int already_;
  bool live_;
  bool shown_ = false;
  std::size_t lines_below_ = 0;  ///< of the live line
  Clock::time_point start_ = Clock::now();
  double last_plain_ = 0;
  double mark_time_ = 0;  ///< start of the window over which the speed is taken
  double mark_work_ = 0;
  double speed_ = 0;
};

}  // namespace moelab
