#include "app/commands/completion.h"

namespace moelab {
namespace {

// Words that bash splits at = and : are put together again, and what the program answers is cut as bash cuts.
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

}  // namespace moelab
