#include "app/commands/completion.h"

#include <iostream>
#include <memory>

#include "app/commands/verbs.h"

namespace moelab {
namespace {

/// What the scripts read: a line for each word, with its help behind a tab for shells that show it; a line
/// that starts with a colon for files of a sort.
void print_candidates(const Candidates& candidates, bool with_help) {
  switch (candidates.files) {
    case Candidates::Files::none:
      break;
    case Candidates::Files::scenarios:
      std::cout << ":scenarios\n";
      break;
    case Candidates::Files::any:
      std::cout << ":files\n";
      break;
    case Candidates::Files::folders:
      std::cout << ":folders\n";
      break;
  }
  for (const Candidates::Word& word : candidates.words)
    std::cout << word.text << (with_help && !word.help.empty() ? "\t" + word.help : "") << '\n';
}

}  // namespace

Verb completion_verb() {
  return {"completion", "Print a completion script for a shell",
          "completion bash > ~/.local/share/bash-completion/completions/moelab", [](Arguments&) -> VerbCall {
            const auto shell = std::make_shared<std::string>();
            const auto words = std::make_shared<std::vector<std::string>>();
            return {{{"SHELL", shell.get(), "bash, zsh or fish (default: bash)", false,
                      one_of("shell", {"bash", "zsh", "fish"})},
                     {"WORD", words.get(),
                      "behind --, as the script asks: a command line; print what may stand for its last "
                      "word",
                      false, nullptr, nullptr, true}},
                    [shell, words] {
                      if (words->empty()) {
                        std::cout << completion_script(*shell);
                      } else {
                        print_candidates(complete(*words), *shell != "bash");
                      }
                      return 0;
                    }};
          }};
}

}  // namespace moelab
