/// Completion in zsh and fish, which packages/shells.txt names. Where one of them is missing, the test says
/// so and ctest counts it as skipped.

#include <doctest/doctest.h>

#include <sstream>

#include "tests/system/completed_lines.h"

namespace moelab::shells_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kZshSettings = R"(
autoload -Uz compinit
compinit -D -u
write_line() { print -rn -- "$BUFFER" > line.new && mv line.new line; }
zle -N write_line
bindkey '^G' write_line
bindkey '^U' kill-whole-line
unsetopt beep prompt_sp
source ./completion
PS1='ready> '
)";

bool has_shell(const std::string& shell, const fs::path& out) {
  if (wait_for(start_program({"sh", "-c", "command -v " + shell}, out)) == 0) return true;
  MESSAGE("shells test skipped: ", shell, " is not installed (packages/install test shells)");
  return false;
}

/// The words that fish offers at the end of a line, each with its help behind a tab.
std::vector<std::string> offered_by_fish(const ShellBench& bench, const std::string& line) {
  const fs::path here = bench.folder.path();
  std::string quoted;
  for (const char c : line) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  std::ofstream(here / "ask.fish") << "source completion\ncomplete -C '" << quoted << "'\n";
  std::string variables;
  for (const auto& [name, value] : bench.environment()) variables += name + "='" + value + "' ";
  REQUIRE(wait_for(start_program(
              {"sh", "-c", "cd '" + here.string() + "' && " + variables + "fish --no-config ask.fish"},
              here / "out")) == 0);
  CHECK(file_text(here / "out.err") == "");
  std::istringstream answer(file_text(here / "out"));
  std::vector<std::string> words;
  for (std::string word; std::getline(answer, word);) words.push_back(word);
  return words;
}

/// Without its backslashes.
std::string last_word(const std::string& line) {
  std::string word;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      word += line[++i];
    } else if (line[i] == ' ') {
      word.clear();
    } else {
      word += line[i];
    }
  }
  return word;
}

}  // namespace

TEST_CASE("zsh: the Tab key completes verbs, options, files, names of the scenario and dotted paths") {
  const ShellBench bench;
  const fs::path here = bench.folder.path();
  if (!has_shell("zsh", here / "out") || !has_terminals("shells")) return;
  REQUIRE(call({"completion", "zsh"}, here / "completion") == 0);
  std::ofstream(here / ".zshrc") << kZshSettings;
  Terminal zsh({"zsh", "-d", "-i"}, here, bench.environment());
  REQUIRE_MESSAGE(wait_until([&] { return zsh.shown().find("ready> ") != std::string::npos; }), zsh.shown());
  for (const CompletedLine& line : completed_lines(bench)) {
    CAPTURE(line.typed);
    CHECK(zsh.completed(line.typed) == line.typed + line.added);
  }
  CHECK(zsh.completed("moelab run tiny.json --set 'model.router.ki") ==
        "moelab run tiny.json --set 'model.router.kind=");
  CHECK(zsh.completed("moelab sample tiny.json --arm \\$") ==
        "moelab sample tiny.json --arm \\$\\(touch\\ made\\) ");
  CHECK_FALSE(fs::exists(here / "made"));
  CHECK(zsh.shown().find("error") == std::string::npos);
}

TEST_CASE("fish: offers verbs, options, files, names of the scenario and dotted paths") {
  const ShellBench bench;
  const fs::path here = bench.folder.path();
  if (!has_shell("fish", here / "out")) return;
  REQUIRE(call({"completion", "fish"}, here / "completion") == 0);
  for (const CompletedLine& line : completed_lines(bench)) {
    const std::string &typed = line.typed, &added = line.added;
    CAPTURE(typed);
    const std::vector<std::string> words = offered_by_fish(bench, typed);
    std::string answer;
    for (const std::string& word : words) answer += word + "\n";
    CAPTURE(answer);
    CHECK(words.empty() == added.empty());
    // fish itself adds the space, but behind = . and /.
    const bool is_whole = added.ends_with(' ');
    if (is_whole) CHECK(words.size() == 1);
    const std::string whole = typed + added.substr(0, added.size() - (is_whole ? 1 : 0));
    for (const std::string& each : words) {
      const std::string word = each.substr(0, each.find('\t'));
      CHECK((is_whole ? last_word(whole) == word : word.starts_with(last_word(whole))));
    }
  }
  CHECK(offered_by_fish(bench, "moelab run tiny.json --profile q").front() == "quick\t{\"train.steps\":2}");
}

}  // namespace moelab::shells_test
