#pragma once

/// Ctrl-C and the other signals that ask for an end (SIGTERM, SIGHUP, SIGQUIT) as a flag.

#include <array>
#include <atomic>
#include <csignal>

namespace moelab {

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

}  // namespace moelab
