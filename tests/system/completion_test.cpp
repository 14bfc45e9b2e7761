/// Completion in a real bash: what the Tab key makes of a line.

#include <doctest/doctest.h>

#include "tests/system/completed_lines.h"

namespace moelab::completion_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettings = R"(
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
write_line() { printf '%s' "$READLINE_LINE" > line.new && mv line.new line; }
bind -x '"\C-g": write_line'
bind '"\C-u": kill-whole-line'
source completion
PS1='ready> '
)";

}  // namespace

TEST_CASE("bash: the Tab key completes verbs, options, files, names of the scenario and dotted paths") {
  if (!has_terminals("completion")) return;
  const ShellBench bench;
  const fs::path here = bench.folder.path();
  REQUIRE(call({"completion", "bash"}, here / "completion") == 0);
  std::ofstream(here / "settings") << kSettings;
  Terminal bash({"bash", "--noprofile", "--rcfile", "settings", "-i"}, here, bench.environment());
  REQUIRE_MESSAGE(wait_until([&] { return bash.shown().ends_with("ready> "); }), bash.shown());
  for (const CompletedLine& line : completed_lines(bench)) {
    CAPTURE(line.typed);
    CHECK(bash.completed(line.typed) == line.typed + line.added);
  }
  SUBCASE("quotes, which bash closes") {
    CHECK(bash.completed("moelab run tiny.json --set 'model.router.ki") ==
          "moelab run tiny.json --set 'model.router.kind='");
    CHECK(bash.completed("moelab run tiny.json --set 'model.router.kind='pert") ==
          "moelab run tiny.json --set model.router.kind=perturbed_cosine ");
    CHECK(bash.completed("moelab run tiny.json --set=\"model.router.kind\"=pert") ==
          "moelab run tiny.json --set=\"model.router.kind\"=perturbed_cosine ");
  }
  SUBCASE("what could be a command of the shell is quoted") {
    CHECK(bash.completed("moelab sample tiny.json --arm \\$") ==
          "moelab sample tiny.json --arm \\$\\(touch\\ made\\) ");
    CHECK_FALSE(fs::exists(here / "made"));
  }
  SUBCASE("only what stands before the cursor counts") {
    bash.type("moelab run tiny.json --set model.router.ki --json" + std::string(7, '\x02'));
    CHECK(bash.completed("") == "moelab run tiny.json --set model.router.kind= --json");
  }
  CHECK(bash.shown().find("error") == std::string::npos);
}

}  // namespace moelab::completion_test
