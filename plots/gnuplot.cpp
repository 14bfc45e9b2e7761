#include "plots/gnuplot.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "sim/base/error.h"

extern char** environ;  // NOLINT: POSIX asks programs to declare it

namespace moelab {
namespace {

void require(int status, const char* what) {
  if (status != 0) throw EnvironmentError(fmt::format("gnuplot: {}: {}", what, std::strerror(status)));
}

/// Everything that can be read until the other end closes.
std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

/// Starts gnuplot with its error stream on `errors`; an errno value, 0 on success.
int spawn_gnuplot(const std::filesystem::path& directory, const std::string& script, int errors,
                  pid_t& process) {
  posix_spawn_file_actions_t actions;
  require(posix_spawn_file_actions_init(&actions), "cannot prepare");
  int status = posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  if (status == 0)
    status = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (status == 0)
    status = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (status == 0) status = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  // -d: the user's start-up files do not change the figures.
  std::string program = "gnuplot", defaults = "-d", file = script;
  std::array<char*, 4> arguments = {program.data(), defaults.data(), file.data(), nullptr};
  // A figure that outgrows the limit of files ends gnuplot: it would not tell of the rest that is lost.
  posix_spawnattr_t attributes;
  sigset_t defaults_of;
  sigemptyset(&defaults_of);
  sigaddset(&defaults_of, SIGXFSZ);
  require(posix_spawnattr_init(&attributes), "cannot prepare");
  posix_spawnattr_setsigdefault(&attributes, &defaults_of);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (status == 0)
    status = posix_spawnp(&process, "gnuplot", &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

}  // namespace

void run_gnuplot(const std::filesystem::path& directory, const std::string& script) {
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) require(errno, "cannot open a pipe");
  pid_t process = 0;
  const int status = spawn_gnuplot(directory, script, errors[1], process);
  close(errors[1]);
  if (status != 0) {
    close(errors[0]);
    if (status == ENOENT && std::filesystem::is_directory(directory))
      throw EnvironmentError(
          "gnuplot is not installed or not on the PATH; figures need it (Debian: gnuplot-nox)");
    require(status, "cannot be started");
  }
  const std::string message = read_all(errors[0]);
  close(errors[0]);
  int result = 0;
  while (waitpid(process, &result, 0) < 0)
    if (errno != EINTR) require(errno, "cannot be waited for");
  if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
    throw EnvironmentError(fmt::format("gnuplot failed on {}: {}", script, message));
}

}  // namespace moelab
