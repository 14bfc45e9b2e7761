#pragma once

/// A program in a new terminal. A test types there.

#include <pty.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "tests/app/run/test_scenario.h"
#include "tests/system/process.h"

namespace moelab {

/// Whether the system has pseudo-terminals, which a bare chroot lacks. Says so if not, and ctest then counts
/// `test` as skipped.
inline bool has_terminals(const std::string& test) {
  int keyboard = -1, screen = -1;
  if (::openpty(&keyboard, &screen, nullptr, nullptr, nullptr) != 0) {
    MESSAGE(test << " test skipped: this system has no pseudo-terminal (" << std::strerror(errno) << ")");
    return false;
  }
  ::close(keyboard);
  ::close(screen);
  return true;
}

class Terminal {
 public:
  /// Starts a program (words[0], looked up in PATH) in `folder` with these variables of the environment.
  Terminal(std::vector<std::string> words, const std::filesystem::path& folder,
           const std::map<std::string, std::string>& environment)
      : folder_(folder) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    winsize size{};
    size.ws_row = 50;
    size.ws_col = 200;
    process_ = ::forkpty(&keyboard_, nullptr, nullptr, &size);
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      if (::chdir(folder.c_str()) == 0) ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::fcntl(keyboard_, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(keyboard_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) {
    REQUIRE(::write(keyboard_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  /// Everything shown so far.
  const std::string& shown() {
    char block[4096];
    for (ssize_t bytes; (bytes = ::read(keyboard_, block, sizeof block)) > 0;)
      shown_.append(block, static_cast<std::size_t>(bytes));
    return shown_;
  }

  /// A shell's line after the text and the Tab key: the shell has to write its line to the file `line` of its
  /// folder at Ctrl-G, whole at once, and forget it at Ctrl-U.
  std::string completed(const std::string& text) {
    const std::filesystem::path file = folder_ / "line";
    type(text + "\t\a");
    REQUIRE_MESSAGE(wait_until([&] {
                      shown();
                      return std::filesystem::exists(file);
                    }),
                    shown());
    const std::string line = file_text(file);
    std::filesystem::remove(file);
    type("\x15");
    return line;
  }

 private:
  std::filesystem::path folder_;
  int keyboard_ = -1;
  pid_t process_ = -1;
  std::string shown_;
};

}  // namespace moelab
