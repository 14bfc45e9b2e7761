#include "app/run/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

#include "sim/base/visible_text.h"

namespace moelab {
namespace {

constexpr double kPlainSeconds = 30;
constexpr double kSpeedWindowSeconds = 10;

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

/// Straight to the terminal, which is to obey: std::cerr writes control characters out.
void command_terminal(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // a line of progress is no result
}

/// Brings the cursor back to the start of the first of the live lines, and clears them.
std::string cleared(std::size_t lines_below) {
  return lines_below == 0 ? "\r\x1b[K" : fmt::format("\r\x1b[{}A\x1b[J", lines_below);
}

/// Cut to the terminal's width: a wrapped line could not be overwritten. Characters stay whole.
std::string cut_line(const std::string& line) {
  std::size_t left = terminal_width() - 1, end = 0;
  for (; end < line.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(line[end]) & 0xC0u) != 0x80u;
    if (begins && left-- == 0) break;
  }
  return line.substr(0, end);
}

}  // namespace

bool is_live_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::string clock_text(double seconds) {
  const long whole = static_cast<long>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string progress_line(const BatchProgress& progress, int already, double elapsed_seconds,
                          double cells_per_second, std::optional<double> seconds_left) {
  const double work_done = progress.finished + progress.partial;
  const int total = already + progress.total;
  std::string line =
      fmt::format("cells {}/{}  {:.0f}%  elapsed {}", already + progress.finished, total,
                  total == 0 ? 100.0 : 100.0 * (already + work_done) / total, clock_text(elapsed_seconds));
  if (work_done > 0) {
    const double left = seconds_left.value_or(elapsed_seconds * (progress.total - work_done) / work_done);
    line += fmt::format("  left {}  {:.3g} cells/min", clock_text(left), 60 * cells_per_second);
  }
  if (progress.diverged > 0) line += fmt::format("  {} diverged", progress.diverged);
  if (progress.failed > 0) line += fmt::format("  {} failed", progress.failed);
  return line;
}

ProgressReporter::ProgressReporter(int already) : already_(already), live_(is_live_terminal()) {}

double ProgressReporter::recent_speed(double work_done, double elapsed) {
  if (elapsed - mark_time_ >= kSpeedWindowSeconds) {
    speed_ = (work_done - mark_work_) / (elapsed - mark_time_);
    mark_time_ = elapsed;
    mark_work_ = work_done;
  }
  // Before the first window is full, the speed since the start stands in.
  return speed_ > 0 || elapsed <= 0 ? speed_ : work_done / elapsed;
}

void ProgressReporter::show(const BatchProgress& progress,
                            const std::function<std::optional<double>()>& seconds_left,
                            const std::function<std::string()>& more) {
  const std::lock_guard lock(mutex_);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double speed = recent_speed(progress.finished + progress.partial, elapsed);
  if (!live_ && elapsed - last_plain_ < kPlainSeconds) return;
  last_plain_ = elapsed;
  const std::string line = progress_line(progress, already_, elapsed, speed, seconds_left());
  if (live_) {
    std::string text = cleared(lines_below_) + cut_line(line);
    lines_below_ = 0;
    std::istringstream lines(more());
    for (std::string below; std::getline(lines, below); ++lines_below_)
      text += "\r\n" + cut_line(visible_text(below));
    command_terminal(text);
  } else {
    std::cerr << line << std::endl;
  }
  shown_ = true;
}

void ProgressReporter::finish() {
  const std::lock_guard lock(mutex_);
  if (live_ && shown_) command_terminal(cleared(lines_below_));
  lines_below_ = 0;
}

}  // namespace moelab
