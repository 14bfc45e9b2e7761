#include "app/run/interrupt.h"

#include <unistd.h>

#include <string_view>

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

/// Sets the action of every ending signal; what was set before.
std::array<struct sigaction, kEndingSignals.size()> set_actions(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  std::array<struct sigaction, kEndingSignals.size()> old{};
  for (std::size_t i = 0; i < old.size(); ++i) {
    const int signal = kEndingSignals[i];
    ::sigaction(signal, nullptr, &old[i]);
    const bool may_be_ignored = signal == SIGHUP || signal == SIGQUIT;
    if (!may_be_ignored || old[i].sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
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

}  // namespace moelab
