#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "app/commands/verbs.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string fish_script(const std::string& verb_list) {
  std::string script = fmt::format("complete -c moelab -n __fish_use_subcommand -f -a '{}'\n", verb_list);
  for (const Verb& verb : verbs()) {
    for (const std::string& option : option_names(verb)) {
      script += fmt::format("complete -c moelab -n '__fish_seen_subcommand_from {}' -l {}\n", verb.name,
                            option.substr(2));
    }
  }
  return script;
}

/// Completes verbs, and the options of a verb.
std::string completion_script(const std::string& shell) {
  const std::string verb_list = fmt::format("{}", fmt::join(names_of(verbs()), " "));
  if (shell == "fish") return fish_script(verb_list);
  std::string script = shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  script += "_moelab() {\n  local options\n  case \"${COMP_WORDS[1]}\" in\n";
  for (const Verb& verb : verbs())
    script += fmt::format("    {}) options='{}' ;;\n", verb.name, fmt::join(option_names(verb), " "));
  script += fmt::format(
      "    *) options='' ;;\n  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then options='{}'; fi\n"
      "  COMPREPLY=($(compgen -W \"$options\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n"
      "complete -o default -F _moelab moelab\n",
      verb_list);
  return script;
}

}  // namespace

Verb completion_verb() {
  return {"completion", "Print a completion script for a shell",
          "completion bash > ~/.local/share/bash-completion/completions/moelab", [](Arguments&) -> VerbCall {
            const auto shell = std::make_shared<std::string>();
            return {{{"SHELL", shell.get(), "bash, zsh or fish (default: bash)", false,
                      one_of("shell", {"bash", "zsh", "fish"})}},
                    [shell] {
                      std::cout << completion_script(*shell);
                      return 0;
                    }};
          }};
}

}  // namespace moelab
