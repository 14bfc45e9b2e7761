#include "app/run/scheduler.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <new>
#include <sstream>
#include <string_view>
#include <thread>

#include "sim/base/error.h"

namespace moelab {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void handle_interrupt(int) {
  if (interrupted.exchange(true)) ::_exit(kInterruptedStatus);
}

extern "C" void exit_at_once(int) {
  constexpr std::string_view kMessage = "moelab: interrupted; the same command resumes\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kInterruptedStatus);
}

/// Sets the action of every ending signal and returns the previous actions.
std::array<struct sigaction, kEndingSignals.size()> set_actions(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  std::array<struct sigaction, kEndingSignals.size()> old{};
  for (std::size_t i = 0; i < old.size(); ++i) {
    const int signal = kEndingSignals[i];
    ::sigaction(signal, nullptr, &old[i]);
    if (old[i].sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  return old;
}

}  // namespace

void exit_when_interrupted() {
  set_actions(exit_at_once, 0);
}

InterruptGuard::InterruptGuard() {
  interrupted = false;
  old_ = set_actions(handle_interrupt, SA_RESTART);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < old_.size(); ++i) ::sigaction(kEndingSignals[i], &old_[i], nullptr);
}

const std::atomic<bool>& InterruptGuard::flag() const {
  return interrupted;
}

namespace {

constexpr double kPlainSeconds = 30;
constexpr double kSpeedWindowSeconds = 10;

std::size_t terminal_width() {
  const std::optional<TerminalSize> size = terminal_size(STDERR_FILENO);
  return size ? size->columns : 80;
}

/// Writes control characters directly to the terminal, because std::cerr would escape them.
void command_terminal(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // loses only a progress line
}

/// Returns the control text that moves the cursor to the first live line and clears the live lines.
std::string cleared(std::size_t lines_below) {
  return lines_below == 0 ? "\r\x1b[K" : fmt::format("\r\x1b[{}A\x1b[J", lines_below);
}

/// The end of the first `count` characters of a text.
std::size_t end_of(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (begins_character(text[end]) && count-- == 0) break;
  }
  return end;
}

/// The bar before the progress line. Empty on a terminal that has no place for it.
std::string live_bar(const BatchProgress& progress, int already, std::size_t length_of_line) {
  constexpr std::size_t kMostWidth = 30, kLeastWidth = 8;
  const std::size_t terminal = terminal_width();
  if (terminal < length_of_line + kLeastWidth + 3) return "";
  const double total = already + progress.total;
  const double share = total > 0 ? (already + progress.finished + progress.partial) / total : 1;
  const std::string bar = progress_bar(share, std::min(kMostWidth, terminal - length_of_line - 3));
  return (wants_colours() ? "\x1b[32m" + bar + "\x1b[0m" : bar) + "  ";
}

}  // namespace

std::string progress_bar(double share, std::size_t width) {
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  std::string bar;
  for (std::size_t i = 0; i < width; ++i) bar += i < full ? "━" : "╌";
  return bar;
}

std::string cut_line(const std::string& line, std::size_t width) {
  if (end_of(line, width) == line.size()) return line;
  const std::size_t end = end_of(line, width - 1);
  // What follows a comma says less than what comes before. A comma within brackets is one of an interval.
  std::size_t clause = std::string::npos;
  int open = 0;
  for (std::size_t at = 0; at < end; ++at) {
    open += line[at] == '[' ? 1 : line[at] == ']' ? -1 : 0;
    if (open == 0 && (line[at] == ',' || line[at] == ';')) clause = at;
  }
  if (clause != std::string::npos) return line.substr(0, clause) + "…";
  const std::size_t space = line.find_last_of(' ', end);
  // A word that is longer than the line is cut.
  return line.substr(0, space == std::string::npos || line.find_first_not_of(' ') > space ? end : space) +
         "…";
}

bool is_live_terminal(int descriptor) {
  const char* const kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

std::optional<TerminalSize> terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row};
}

bool wants_colours() {
  const char* const refusal = std::getenv("NO_COLOR");
  return refusal == nullptr || *refusal == '\0';
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
    const double speed = 60 * cells_per_second;
    line += fmt::format("  left {}  {} cells/min", clock_text(left),
                        speed < 999.5 ? fmt::format("{:.3g}", speed) : fmt::format("{:.0f}", speed));
  }
  if (progress.diverged > 0) line += fmt::format("  {} diverged", progress.diverged);
  if (progress.failed > 0) line += fmt::format("  {} failed", progress.failed);
  return line;
}

ProgressReporter::ProgressReporter(int already) : already_(already), live_(is_live_terminal(STDERR_FILENO)) {}

double ProgressReporter::recent_speed(double work_done, double elapsed) {
  if (elapsed - mark_time_ >= kSpeedWindowSeconds) {
    speed_ = (work_done - mark_work_) / (elapsed - mark_time_);
    mark_time_ = elapsed;
    mark_work_ = work_done;
  }
  // Until the first time window is complete, the mean speed since the start is used.
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
    // A wrapped line could not be overwritten.
    const std::size_t width = terminal_width() - 1;
    std::string text =
        cleared(lines_below_) + live_bar(progress, already_, line.size()) + cut_line(line, width);
    lines_below_ = 0;
    std::istringstream lines(more());
    for (std::string below; std::getline(lines, below); ++lines_below_)
      text += "\r\n" + cut_line(visible_text(below), width);
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

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTick{200};

/// The state that the threads share. `mutex` guards the counts, the error and the sink.
struct Batch {
  Batch(const std::vector<const Cell*>& cells_, const CellRunner& runner_, const CellSink& sink_,
        const BatchOptions& options_, std::size_t threads)
      : cells(cells_), runner(runner_), sink(sink_), options(options_), shares(threads) {
    running_threads = static_cast<int>(threads);
    progress.total = static_cast<int>(cells.size());
  }

  const std::vector<const Cell*>& cells;
  const CellRunner& runner;
  const CellSink& sink;
  const BatchOptions& options;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> broken{false};
  std::atomic<bool> one_failed{false};
  std::vector<std::atomic<double>> shares;  ///< share done of each thread's current cell
  std::mutex mutex;
  std::condition_variable thread_ended;
  int running_threads = 0;
  BatchProgress progress;
  std::exception_ptr error;

  bool must_stop() const {
    return broken || (options.fail_fast && one_failed) || (options.stop != nullptr && *options.stop);
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

CellResult compute(const Batch& batch, const Cell& cell, std::atomic<double>& share) {
  try {
    return batch.runner(cell, [&](double done) {
      share = std::clamp(done, 0.0, 1.0);
      return batch.must_stop();
    });
  } catch (const EnvironmentError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw EnvironmentError("not enough memory to run cell " + cell.id + "; fewer --threads need less");
  } catch (const std::exception& error) {
    CellResult result;
    result.state = CellResult::State::failed;
    result.message = error.what();
    return result;
  }
}

void hand_over(Batch& batch, const Cell& cell, const CellResult& result, double seconds,
               std::atomic<double>& share) {
  const std::lock_guard lock(batch.mutex);
  share = 0;
  if (batch.broken || result.state == CellResult::State::interrupted) return;
  try {
    batch.sink(cell, result, seconds);
  } catch (...) {
    // Set under the lock, so that no thread uses the sink after a failure.
    batch.broken = true;
    throw;
  }
  ++batch.progress.finished;
  if (result.state == CellResult::State::failed) {
    ++batch.progress.failed;
    batch.one_failed = true;
  }
  if (result.state == CellResult::State::diverged) ++batch.progress.diverged;
}

void work(Batch& batch, std::atomic<double>& share) {
  try {
    while (!batch.must_stop()) {
      const std::size_t index = batch.next++;
      if (index >= batch.cells.size()) break;
      const Cell& cell = *batch.cells[index];
      const Clock::time_point start = Clock::now();
      const CellResult result = compute(batch, cell, share);
      hand_over(batch, cell, result, seconds_since(start), share);
    }
  } catch (...) {
    batch.broken = true;
    const std::lock_guard lock(batch.mutex);
    if (!batch.error) batch.error = std::current_exception();
  }
  const std::lock_guard lock(batch.mutex);
  --batch.running_threads;
  batch.thread_ended.notify_all();
}

void wait_for_threads(Batch& batch, const BatchOptions& options) {
  Clock::time_point stopped{};
  bool was_overdue = false;
  std::unique_lock lock(batch.mutex);
  while (batch.running_threads > 0) {
    batch.thread_ended.wait_for(lock, kTick);
    BatchProgress progress = batch.progress;
    for (const std::atomic<double>& share : batch.shares) progress.partial += share;
    // Without the lock, so that a blocked terminal does not block the threads.
    lock.unlock();
    if (options.watch) options.watch(progress);
    lock.lock();
    if (options.stop == nullptr || !*options.stop) continue;
    if (stopped == Clock::time_point{}) stopped = Clock::now();
    if (!was_overdue && options.overdue && batch.running_threads > 0 &&
        seconds_since(stopped) > kGraceSeconds) {
      was_overdue = true;
      options.overdue();
    }
  }
}

/// Starts one thread for each entry of `shares`, or as many as the system allows.
void start_threads(Batch& batch, std::vector<std::thread>& threads) {
  try {
    for (std::atomic<double>& share : batch.shares)
      threads.emplace_back(work, std::ref(batch), std::ref(share));
  } catch (const std::exception& error) {
    if (threads.empty()) throw EnvironmentError(fmt::format("no thread can be started: {}", error.what()));
    const std::lock_guard lock(batch.mutex);
    batch.running_threads -= static_cast<int>(batch.shares.size() - threads.size());
    std::cerr << fmt::format("moelab: note: {} of {} threads could be started ({}); these run all cells\n",
                             threads.size(), batch.shares.size(), error.what());
  }
}

}  // namespace

BatchProgress run_batch(const std::vector<const Cell*>& cells, const CellRunner& runner, const CellSink& sink,
                        const BatchOptions& options) {
  const std::size_t count =
      std::clamp<std::size_t>(cells.size(), 1, static_cast<std::size_t>(std::max(options.threads, 1)));
  Batch batch(cells, runner, sink, options, count);
  std::vector<std::thread> threads;
  threads.reserve(count);  // reserved now, because an exception below would find running threads
  start_threads(batch, threads);
  std::exception_ptr watching;
  try {
    wait_for_threads(batch, options);
  } catch (...) {
    batch.broken = true;
    watching = std::current_exception();
  }
  for (std::thread& thread : threads) thread.join();
  if (batch.error) std::rethrow_exception(batch.error);
  if (watching) std::rethrow_exception(watching);
  return batch.progress;
}

}  // namespace moelab
