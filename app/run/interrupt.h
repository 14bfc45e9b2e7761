#pragma once

/// Ctrl-C and SIGTERM as a flag.

#include <atomic>
#include <csignal>

namespace moelab {

/// The exit status of an interrupted command that can be resumed.
constexpr int kInterruptedStatus = 130;

/// From now on SIGINT and SIGTERM end the process at once with kInterruptedStatus: for the parts of a run
/// that can be left at any moment, before and after its cells.
void exit_when_interrupted();

/// While it lives, the first SIGINT or SIGTERM sets the flag and the second ends the process at once with
/// kInterruptedStatus. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  const std::atomic<bool>& flag() const;

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

}  // namespace moelab
