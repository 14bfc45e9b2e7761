#pragma once

/// Programs started from a test: the one under test, whose path is in MOELAB_PROGRAM, and others.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace moelab {

using Clock = std::chrono::steady_clock;

/// Longer than any wait that succeeds; a hung program fails the test instead of hanging it.
constexpr std::chrono::seconds kPatience{300};

inline std::string program() {
  const char* path = std::getenv("MOELAB_PROGRAM");
  REQUIRE_MESSAGE(path != nullptr, "MOELAB_PROGRAM names the program under test");
  return path;
}

/// Starts a program (words[0], looked up in PATH), with its output in `out` and its errors in `out`.err.
inline pid_t start_program(std::vector<std::string> words, const std::filesystem::path& out) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (out.string() + ".err").c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
  pid_t process = 0;
  REQUIRE(::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

/// Starts the program under test.
inline pid_t start(std::vector<std::string> words, const std::filesystem::path& out) {
  words.insert(words.begin(), program());
  return start_program(std::move(words), out);
}

/// The exit status; −signal when a signal ended the process.
inline int wait_for(pid_t process) {
  const Clock::time_point start = Clock::now(), limit = start + kPatience;
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (Clock::now() > limit) {
      ::kill(process, SIGKILL);
      ::waitpid(process, &status, 0);
      FAIL("the program did not end");
    }
    // An eighth of what has passed: short programs are not waited for longer than they run.
    const Clock::duration step = (Clock::now() - start) / 8;
    std::this_thread::sleep_for(
        std::clamp<Clock::duration>(step, std::chrono::microseconds(200), std::chrono::milliseconds(5)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Runs the program under test to its end.
inline int call(const std::vector<std::string>& words, const std::filesystem::path& out) {
  return wait_for(start(words, out));
}

/// Whether `condition` came true before `patience` was over; asked every few milliseconds.
template <class Condition>
bool wait_until(const Condition& condition, std::chrono::seconds patience = kPatience) {
  const Clock::time_point limit = Clock::now() + patience;
  while (!condition()) {
    if (Clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace moelab
