#pragma once

/// The progress line: cells done, percentage, elapsed, time left, speed.

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "app/run/scheduler.h"

namespace moelab {

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
