/// The built program where its answer cannot be written, and under an environment that it does not know.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/app/cli/tiny_run.h"
#include "tests/system/run_directory.h"

namespace moelab::output_test {
namespace {

namespace fs = std::filesystem;

/// A variable of the environment, of the programs that are started, too, until the end of the test.
struct Variable {
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("program: an answer to a full disk ends with status 3 and a sentence") {
  const Bench bench;
  const fs::path full = bench.folder.path() / "full", log = bench.folder.path() / "log";
  fs::create_symlink("/dev/full", full);
  REQUIRE(call({"run", bench.file, "--out", bench.run}, log) == 0);
  const std::vector<std::vector<std::string>> commands = {{"--version"},
                                                          {"--help"},
                                                          {"run", "--help"},
                                                          {"list"},
                                                          {"list", "--json"},
                                                          {"schema"},
                                                          {"validate", bench.file},
                                                          {"plan", bench.file},
                                                          {"run", bench.file, "--out", bench.run},
                                                          {"status", bench.run},
                                                          {"claims", bench.run, "--json"},
                                                          {"export", bench.run},
                                                          {"verify", bench.run},
                                                          {"completion", "bash"}};
  for (const std::vector<std::string>& words : commands) {
    CAPTURE(words[0]);
    CHECK(call(words, full) == 3);
    const std::string error = file_text(full.string() + ".err");
    CHECK_MESSAGE(error.find("moelab: error: standard output cannot be written\n") != std::string::npos,
                  error);
  }
  // An error that was to be told in JSON.
  CHECK(call({"exprot", "--json"}, full) == 3);
  CHECK(file_text(full.string() + ".err").find("unknown command 'exprot'") != std::string::npos);
  CHECK(call({"exprot"}, full) == 2);
}

TEST_CASE("program: an unknown vector level is refused by every verb, and ends no program at its start") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log";
  {
    const Variable level("MOELAB_VECTOR_LEVEL", "avx22");
    for (const char* word : {"--version", "--help", "list", "run", "verify"}) {
      CHECK(call({word}, log) == 2);
      CHECK(file_text(log).empty());
      const std::string error = file_text(log.string() + ".err");
      CHECK(error.starts_with("moelab: error: MOELAB_VECTOR_LEVEL: unknown vector level 'avx22'"));
      CHECK(std::count(error.begin(), error.end(), '\n') == 1);
    }
  }
  const Variable none("MOELAB_VECTOR_LEVEL", "");
  CHECK(call({"--version"}, log) == 0);
}

}  // namespace moelab::output_test
