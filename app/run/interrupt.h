#pragma once

/// Ctrl-C and SIGTERM as a flag.

#include <atomic>
#include <csignal>

namespace moelab {

/// The exit status of an interrupted command that can be resumed.
constexpr int kInterruptedStatus = 130;

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
