#include "app/cli/completion.h"

#include <algorithm>
#include <iostream>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/verbs.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

// Bash splits words at = and :. The script joins them again, and cuts the answers where bash would.
constexpr const char* kBashScript =
    R"sh(# Completion of moelab for bash: the program itself says what may stand at the cursor.
_moelab() {
  local rest=${COMP_LINE:0:COMP_POINT} trimmed given=() count=0 i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    trimmed=${rest#"${rest%%[![:space:]]*}"}
    if ((count == 0)) || [[ $trimmed != "$rest" ]]; then
      given[count++]=
    fi
    if ((i < COMP_CWORD)); then
      given[count - 1]+=${COMP_WORDS[i]}
      rest=${trimmed#"${COMP_WORDS[i]}"}
    else
      given[count - 1]+=$trimmed
    fi
  done

  # Bash replaces what stands behind the last of these marks, or all of a word in quotes.
  local raw=${given[count - 1]} quotes marks=$'\n' mark head tail current cut program
  quotes=${raw//[!\"\']/}
  head=${raw%%[\"\']*}
  tail=${raw##*[\"\']}
  for mark in = : @; do
    if [[ $COMP_WORDBREAKS == *"$mark"* ]]; then
      marks+=$mark
    fi
  done
  if ((${#quotes} % 2 == 0)); then
    if [[ $tail == *[$marks]* ]]; then
      tail=${tail##*[$marks]}
    else
      tail=${raw#"${head%"${head##*[$marks]}"}"}
    fi
  fi
  given=("${given[@]//[\\\"\']/}")
  current=${given[count - 1]}
  cut=${current%"${tail//[\\\"\']/}"}
  for ((i = 0; i < count - 1; i++)); do
    if [[ ${given[i]} == '~/'* ]]; then
      given[i]=$HOME/${given[i]:2}
    fi
  done
  program=${given[0]}

  local file=$current option= line files=
  if [[ $current == --*=* ]]; then
    file=${current#*=}
    option=${current%"$file"}
  fi
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) files=$line ;;
      *)
        line=${line#"$cut"}
        if ((${#quotes} % 2 == 0)) && [[ $line == *[!A-Za-z0-9._=:+,@%/-]* ]]; then
          printf -v line %q "$line"
        fi
        COMPREPLY+=("$line")
        ;;
    esac
  done < <("$program" completion bash -- "${given[@]:1}" 2>/dev/null)

  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do
      line=$option$line
      COMPREPLY+=("${line#"$cut"}")
    done < <(
      compgen -d -- "$file"
      case $files in
        :scenarios) compgen -f -X '!*.json' -- "$file" ;;
        :files) compgen -f -- "$file" ;;
      esac
    )
  elif ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=.] ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _moelab moelab
)sh";

constexpr const char* kZshScript = R"sh(#compdef moelab
# Completion of moelab for zsh: the program itself says what may stand at the cursor.
_moelab() {
  local current=${(Q)PREFIX} program=${(Q)words[1]} line text files=
  local -a given open closed
  given=("${(@Q)words[2,CURRENT-1]}")
  given=("${(@)given/#\~\//$HOME/}")
  program=${program/#\~\//$HOME/}
  while IFS= read -r line; do
    case $line in
      :*) files=$line ;;
      *)
        text=${line%%$'\t'*}
        if [[ $line == *$'\t'* ]]; then
          line=${text//:/\\:}:${line#*$'\t'}
        else
          line=${text//:/\\:}
        fi
        if [[ $text == *[=.] ]]; then
          open+=("$line")
        else
          closed+=("$line")
        fi
        ;;
    esac
  done < <("$program" completion zsh -- "${given[@]}" "$current" 2>/dev/null)

  if [[ -n $files && $current == --*=* ]]; then
    compset -P "${current%%\=*}="
  fi
  local -i found=1
  case $files in
    :scenarios) _files -g '*.json(-.)' && found=0 ;;
    :files) _files && found=0 ;;
    :folders) _files -/ && found=0 ;;
  esac
  (($#open)) && _describe -V 'to go on' open -S '' && found=0
  (($#closed)) && _describe -V 'candidate' closed && found=0
  return found
}
if [[ $funcstack[1] == _moelab ]]; then
  _moelab "$@"
else
  (($+functions[compdef])) || { autoload -Uz compinit && compinit; }
  compdef _moelab moelab
fi
)sh";

constexpr const char* kFishScript =
    R"sh(# Completion of moelab for fish: the program itself says what may stand at the cursor.
function __moelab_candidates
    set -l given (string replace -r '^~/' "$HOME/" -- (commandline -opc))
    set -l raw (commandline -ct)
    set -l current (string replace -ra '[\\\\\'"]' '' -- $raw)
    set -l option (string match -r -- '^--[^=]*=' $current)
    set -l file (string replace -r -- '^--[^=]*=' '' $raw)
    for line in (command $given[1] completion fish -- $given[2..] "$current" 2>/dev/null)
        switch $line
            case ':*'
                for path in (complete -C "__fish_command_without_completions $file")
                    if test $line = :files; or string match -qr '/$' -- $path; or begin
                            test $line = :scenarios; and string match -q '*.json' -- $path
                        end
                        printf '%s\n' "$option$path"
                    end
                end
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c moelab -f -k -a '(__moelab_candidates)'
)sh";

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "zsh") return kZshScript;
  return shell == "fish" ? kFishScript : kBashScript;
}

namespace {

/// Sets an option. Numbers stay as they are, since no completer reads them.
void give(const Option& option, const std::string& text) {
  const auto set = [&](auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, std::filesystem::path>) {
      *value = text;
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>> ||
                         std::is_same_v<Value, std::vector<std::filesystem::path>>) {
      value->push_back(text);
    }
  };
  std::visit(set, option.value);
}

Candidates candidates_of(const Option& option, const std::string& word) {
  Candidates candidates;
  if (option.rules.candidates) {
    candidates = option.rules.candidates(word);
  } else if (const NameCheck* names = option.rules.check.target<NameCheck>()) {
    for (const std::string& name : names->names) candidates.words.push_back({name});
  } else if (option.is_path()) {
    candidates.files = Candidates::Files::any;
  }
  return candidates;
}

/// Reads the words after a verb: sets the verb's options word by word, and finds what may come next.
class LineBehindVerb {
 public:
  explicit LineBehindVerb(const Verb& verb) : call_(verb.call()) {
    for (const Option& option : call_.options.list)
      if (!option.is_named()) places_.push_back(&option);
  }
  LineBehindVerb(const LineBehindVerb&) = delete;
  LineBehindVerb& operator=(const LineBehindVerb&) = delete;

  void take(const std::string& word) {
    if (open_) {
      give(*open_, word);
      open_ = nullptr;
    } else if (word == "--" && !only_places_) {
      only_places_ = true;
    } else if (word.starts_with("--") && !only_places_) {
      take_option(word);
    } else if (!places_.empty()) {
      give(*places_.front(), word);
      if (!places_.front()->is_list()) places_.erase(places_.begin());
    }
  }

  Candidates next(const std::string& word) const {
    if (open_) return candidates_of(*open_, word);
    const std::size_t equals = word.find('=');
    if (!only_places_ && word.starts_with("--") && equals != std::string::npos) {
      const Option* const option = find(word.substr(0, equals));
      if (!option || option->is_flag()) return {};
      Candidates values = candidates_of(*option, word.substr(equals + 1));
      for (Candidates::Word& value : values.words) value.text.insert(0, word, 0, equals + 1);
      return values;
    }
    if (!only_places_ && (word.starts_with("-") || (word.empty() && places_.empty()))) return names();
    return places_.empty() ? Candidates{} : candidates_of(*places_.front(), word);
  }

 private:
  const Option* find(const std::string& name) const {
    const std::vector<Option>& list = call_.options.list;
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const Option& option) { return option.name == name; });
    return found == list.end() ? nullptr : &*found;
  }

  void take_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const Option* const option = find(word.substr(0, equals));
    if (!option) return;
    used_.push_back(option);
    if (option->is_flag()) return;
    if (equals == std::string::npos) {
      open_ = option;
    } else {
      give(*option, word.substr(equals + 1));
    }
  }

  /// The options that may still come: those that are not given yet, and lists.
  Candidates names() const {
    Candidates candidates;
    for (const Option& option : call_.options.list) {
      const bool is_used = std::find(used_.begin(), used_.end(), &option) != used_.end();
      if (option.is_named() && (!is_used || option.is_list()))
        candidates.words.push_back({option.name, option.help});
    }
    candidates.words.push_back({"--help", "explain the command"});
    return candidates;
  }

  VerbCall call_;
  std::vector<const Option*> places_;  ///< options without a name that may still come
  std::vector<const Option*> used_;
  const Option* open_ = nullptr;  ///< its value comes next
  bool only_places_ = false;      ///< after "--"
};

Candidates candidates_at_end(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  Candidates candidates;
  if (words.size() == 1) {
    for (const Verb& verb : verbs()) candidates.words.push_back({verb.name, verb.help});
    if (words.front().starts_with("-")) candidates.words = {{"--help"}, {"--version"}};
    return candidates;
  }
  const auto verb = std::find_if(verbs().begin(), verbs().end(),
                                 [&](const Verb& each) { return each.name == words.front(); });
  if (verb == verbs().end()) return {};
  LineBehindVerb line(*verb);
  for (std::size_t i = 1; i + 1 < words.size(); ++i) line.take(words[i]);
  return line.next(words.back());
}

bool is_control(char character) {
  const auto code = static_cast<unsigned char>(character);
  return code < 0x20 || code == 0x7f;
}

}  // namespace

Completer offer_files(Candidates::Files files) {
  return [files](const std::string&) { return Candidates{{}, files}; };
}

Candidates offer_metrics(const std::string&) {
  Candidates candidates;
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics)
      candidates.words.push_back({metric.name, metric.help});
  }
  return candidates;
}

Candidates complete(const std::vector<std::string>& words) {
  Candidates candidates;
  try {
    candidates = candidates_at_end(words);
  } catch (const std::exception&) {
    return {};
  }
  std::erase_if(candidates.words, [&](const Candidates::Word& word) {
    return !word.text.starts_with(words.back()) || word.text.starts_with(':') ||
           std::any_of(word.text.begin(), word.text.end(), is_control);
  });
  for (Candidates::Word& word : candidates.words)
    std::replace_if(word.help.begin(), word.help.end(), is_control, ' ');
  return candidates;
}

namespace {

/// Prints a line for each word. For shells that show help, it follows after a tab. A line that starts with a
/// colon stands for the files of a kind.
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

struct CompletionOptions {
  std::string shell;
  std::vector<std::string> words;

  void bind(VerbOptions& options) {
    options.add("SHELL", &shell, "bash, zsh or fish (default: bash)",
                {.check = one_of("shell", {"bash", "zsh", "fish"})});
    options.add("WORD", &words,
                "after --, for the script: a command line; print the candidates for its last word",
                {.takes_empty = true});
  }
};

int print_completion(const CompletionOptions& options) {
  if (options.words.empty()) {
    std::cout << completion_script(options.shell);
  } else {
    print_candidates(complete(options.words), options.shell != "bash");
  }
  return 0;
}

}  // namespace

Verb completion_verb() {
  return make_verb("completion", "Print a completion script for a shell",
                   "completion bash > ~/.local/share/bash-completion/completions/moelab", print_completion);
}

}  // namespace moelab
