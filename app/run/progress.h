#pragma once

/// The progress line: cells done, percentage, elapsed, time left, speed.

#include <chrono>
#include <functional>
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

/// Shows progress on stderr: one live line on a terminal, a plain line every 30 s elsewhere. No colours.
class ProgressReporter {
 public:
  explicit ProgressReporter(int already);
  /// `seconds_left` is asked only where a line is shown.
  void show(const BatchProgress& progress, const std::function<std::optional<double>()>& seconds_left);
  /// Clears the live line, so that other output starts on a clean one.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  double recent_speed(double work_done, double elapsed);

  int already_;
  bool live_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  double last_plain_ = 0;
  double mark_time_ = 0;  ///< start of the window over which the speed is taken
  double mark_work_ = 0;
  double speed_ = 0;
};

}  // namespace moelab
