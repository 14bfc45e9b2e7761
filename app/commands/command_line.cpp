#include "app/commands/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "app/commands/verbs.h"
#include "app/commands/visible_output.h"
#include "app/json/json.h"
#include "app/run/provenance.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

constexpr int kUserErrorStatus = 2;
constexpr int kEnvironmentErrorStatus = 3;

/// The program's verbs with what each does when chosen.
struct Program {
  CLI::App app{"A laboratory for the theory of routing in Mixture-of-Experts models", "moelab"};
  Arguments arguments;
  std::map<const CLI::App*, std::function<int()>> actions;
};

/// Why an empty text is refused.
std::string empty_problem(const std::string& text) {
  return text.empty() ? "got '', needs a non-empty text" : "";
}

void add_option(CLI::App& parser, const Option& option) {
  CLI::Option* const added = std::visit(
      [&](auto* value) -> CLI::Option* {
        using Value = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return parser.add_flag(option.name, *value, option.help);
        } else {
          CLI::Option* const own = parser.add_option(option.name, *value, option.help);
          // One value each time: otherwise an option would swallow what is known by its place.
          if (std::is_same_v<Value, std::vector<std::string>> && option.name.starts_with("--"))
            own->allow_extra_args(false);
          if (!option.takes_empty) own->check(empty_problem);
          return own;
        }
      },
      option.value);
  if (option.required) added->required();
  if (option.check) added->check(option.check);
}

void build(Program& program) {
  program.app.set_version_flag("--version",
                               fmt::format("moelab {} (commit {})", program_version(), program_commit()));
  program.app.footer(
      "Examples:\n"
      "  moelab new my_idea                                   a small scenario to start from\n"
      "  moelab run my_idea.json --profile quick              its cells, claims and figures\n"
      "  moelab run my_idea.json --set model.experts=32       the same with another value\n"
      "  moelab report runs/my_idea-quick                     one HTML file that opens from disk\n"
      "  moelab check dikkala2023                             theorems against computation\n"
      "  moelab analyze --logits L.npy --labels C.npy         your own router\n\n"
      "moelab VERB --help explains a verb. Exit status: 0 done; 1 done, but a cell failed, every cell\n"
      "diverged, a claim is refuted (`claims`) or a check came out unexpected; 2 bad input; 3 disk,\n"
      "permissions or a missing program; 130 interrupted, resumable.");
  for (const Verb& verb : verbs()) {
    CLI::App* const parser = program.app.add_subcommand(verb.name, verb.help);
    parser->footer("Example: moelab " + verb.example);
    VerbCall call = verb.call(program.arguments);
    for (const Option& option : call.options) add_option(*parser, option);
    program.actions[parser] = std::move(call.run);
  }
}

/// Names the verb or option that was not understood before CLI11's own message would be less exact.
void check_names(const std::vector<std::string>& words) {
  const std::vector<std::string> names = names_of(verbs());
  if (words.empty())
    throw UserError("", fmt::format("a verb is missing; allowed: {}", fmt::join(names, ", ")));
  std::vector<std::string> options = {"--help", "--version"};
  if (!words[0].starts_with("-")) {
    const auto chosen = std::find(names.begin(), names.end(), words[0]);
    if (chosen == names.end()) throw UserError(words[0], unknown_name("verb", words[0], names));
    options = option_names(verbs()[static_cast<std::size_t>(chosen - names.begin())]);
  }
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::find(options.begin(), options.end(), name) != options.end()) continue;
    throw UserError(name, unknown_name("option", name, options));
  }
}

/// CLI11's error at the option or argument that its text begins with; at the verb where it names none.
UserError located(const CLI::ParseError& error, const std::string& verb) {
  const std::string text = error.what(), help = verb.starts_with("-") ? "moelab" : "moelab " + verb;
  const std::size_t colon = text.find(": "), space = text.find(' ');
  if (colon != std::string::npos && colon < space) return {text.substr(0, colon), text.substr(colon + 2)};
  return {help, fmt::format("{}; see {} --help", text, help)};
}

/// The status, once the answer has left the program.
int answered(int status) {
  if (!std::cout.flush()) throw EnvironmentError("standard output cannot be written");
  return status;
}

/// `words` is the command line, the program's name first.
int dispatch(Program& program, const std::vector<std::string>& words) {
  kernels::check_vector_level();
  const std::vector<std::string> given(words.empty() ? words.end() : words.begin() + 1, words.end());
  check_names(given);
  build(program);
  program.arguments.all = words;
  try {
    program.app.parse(
        std::vector<std::string>(given.rbegin(), given.rend()));  // CLI11 takes words last first
  } catch (const CLI::Success& request) {                         // --help or --version
    return answered(program.app.exit(request));
  } catch (const CLI::ParseError& error) {
    throw located(error, given.front());
  }
  const std::vector<CLI::App*> chosen = program.app.get_subcommands();
  if (chosen.empty()) throw UserError("", "a verb is missing; see moelab --help");
  return answered(program.actions.at(chosen.front())());
}

/// The text on one line: line breaks and tabs as escapes, like the other control characters (VisibleOutput).
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char letter : text) {
    if (letter == '\n') {
      line += "\\n";
    } else if (letter == '\t') {
      line += "\\t";
    } else {
      line += letter;
    }
  }
  return line;
}

/// Of a text longer than people read the beginning and the end, three quarters and a quarter of `longest`.
std::string shortened(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  // No character of UTF-8 is cut: its later bytes are 10xxxxxx.
  const auto is_inner = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  std::size_t begin = longest / 4 * 3, end = text.size() - longest / 4;
  while (begin > 0 && is_inner(begin)) --begin;
  while (end < text.size() && is_inner(end)) ++end;
  return fmt::format("{} … ({} bytes) … {}", text.substr(0, begin), text.size(), text.substr(end));
}

/// Tells an error, and returns the exit status: `status`, or that of the environment's failure where the
/// standard output, on which programs await the error, takes nothing; people then find it on stderr.
int report(bool json, int status, const std::string& path, const std::string& message) {
  if (json) {
    const Json answer = {{"error", {{"path", path}, {"message", message}}}};
    std::cout << json_text(answer) << std::endl;
    if (std::cout) return status;
    status = kEnvironmentErrorStatus;
  }
  constexpr std::size_t kLongestPath = 320, kLongestMessage = 4000;
  const std::string place = on_one_line(shortened(path, kLongestPath));
  std::cerr << "moelab: error: " << place << (place.empty() ? "" : ": ")
            << on_one_line(shortened(message, kLongestMessage)) << std::endl;
  return status;
}

/// Tells that the memory does not hold what `verb` asks for; where it does not hold the message, only that.
int out_of_memory(bool json, const char* verb) {
  try {
    return report(json, kEnvironmentErrorStatus, "", fmt::format("not enough memory for moelab {}", verb));
  } catch (const std::bad_alloc&) {
    return tell_lack_of_memory();
  }
}

}  // namespace

int tell_lack_of_memory() noexcept {
  constexpr std::string_view kMessage = "moelab: error: not enough memory\n";
  // Threads run out of memory together: one tells, and the others go on once it has.
  static std::mutex telling;
  static bool told = false;
  const std::scoped_lock one_at_a_time(telling);
  if (!told) {
    // Whether or not the message arrives, the status does.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    told = true;
  }
  return kEnvironmentErrorStatus;
}

int run_command_line(int argc, const char* const* argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of files then fails, which is told
  const VisibleOutput answers(std::cout), errors(std::cerr);
  const bool json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  const char* const verb = argc > 1 ? argv[1] : "";
  try {
    const std::vector<std::string> words(argv, argv + argc);
    Program program;
    return dispatch(program, words);
  } catch (const InvalidOption& error) {
    return report(json, kUserErrorStatus, error.path(), error.message());
  } catch (const std::bad_alloc&) {
    return out_of_memory(json, verb);
  } catch (const std::length_error&) {  // more than any memory holds
    return out_of_memory(json, verb);
  } catch (const EnvironmentError& error) {
    return report(json, kEnvironmentErrorStatus, "", error.what());
  } catch (const std::system_error& error) {  // of files, streams and threads
    return report(json, kEnvironmentErrorStatus, "", error.what());
  } catch (const std::exception& error) {
    return report(json, kEnvironmentErrorStatus, "",
                  fmt::format("this is a defect of the program: {}", error.what()));
  }
}

}  // namespace moelab
