#include "app/cli/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include "app/cli/terminal_output.h"
#include "app/cli/verbs.h"
#include "app/scenario/errors.h"
#include "app/scenario/json.h"
#include "app/store/provenance.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

constexpr int kUserErrorStatus = 2;
constexpr int kEnvironmentErrorStatus = 3;

/// The parser of the whole command line, and the call of each verb.
struct Program {
  CLI::App app{"A laboratory for the theory of routing in Mixture-of-Experts models", "moelab"};
  std::map<const CLI::App*, VerbCall> calls;
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
          // One value each time: otherwise an option would swallow values that their place identifies.
          if (option.is_list() && option.is_named()) own->allow_extra_args(option.rules.takes_several);
          if (!option.rules.takes_empty) own->check(empty_problem);
          return own;
        }
      },
      option.value);
  if (option.rules.required) added->required();
  if (option.rules.check) added->check(option.rules.check);
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
      "moelab COMMAND --help explains a command. Exit status: 0 done; 1 done, but a cell failed, every cell\n"
      "diverged, a claim is refuted (`claims`) or a check came out unexpected; 2 bad input; 3 disk,\n"
      "permissions or a missing program; 130 interrupted, resumable.");
  // With at most one, a folder named like a verb is no second verb: `report run --out run.html`.
  program.app.require_subcommand(0, 1);
  program.app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  for (const Verb& verb : verbs()) {
    CLI::App* const parser = program.app.add_subcommand(verb.name, verb.help);
    parser->group("Commands");
    parser->footer("Example: moelab " + verb.example);
    const VerbCall& call = program.calls[parser] = verb.call();
    for (const Option& option : call.options.list) add_option(*parser, option);
  }
}

/// Throws UserError for an unknown verb or option, with the nearest name. CLI11's own message is less exact.
void check_names(const std::vector<std::string>& words) {
  const std::vector<std::string> names = names_of(verbs());
  std::vector<std::string> options = {"--help", "--version"};
  if (!words[0].starts_with("-")) {
    const auto chosen = std::find(names.begin(), names.end(), words[0]);
    if (chosen == names.end()) throw UserError(words[0], unknown_name("command", words[0], names));
    options = option_names(verbs()[static_cast<std::size_t>(chosen - names.begin())]);
  }
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::find(options.begin(), options.end(), name) != options.end()) continue;
    throw UserError(name, unknown_name("option", name, options));
  }
}

/// CLI11's error as a UserError at the option that its text begins with, else at the verb.
UserError located(const CLI::ParseError& error, const std::string& verb) {
  const std::string text = error.what(), help = verb.starts_with("-") ? "moelab" : "moelab " + verb;
  const std::size_t colon = text.find(": "), space = text.find(' ');
  if (colon != std::string::npos && colon < space) {
    const std::string message = text.substr(colon + 2);
    const bool lacks_value = message.find(" required ") != std::string::npos && message.ends_with(" missing");
    return {text.substr(0, colon),
            lacks_value ? fmt::format("missing; needs a value; see {} --help", help) : message};
  }
  return {help, fmt::format("{}; see {} --help", text, help)};
}

/// The words after the program's name. No word, `help` and `help VERB` become --help and VERB --help.
std::vector<std::string> asked_words(const std::vector<std::string>& words) {
  std::vector<std::string> asked(words.empty() ? words.end() : words.begin() + 1, words.end());
  if (asked.empty()) return {"--help"};
  if (asked.front() != "help") return asked;
  asked.erase(asked.begin());
  asked.push_back("--help");
  return asked;
}

/// Flushes the answer and returns the status.
int answered(int status) {
  if (!std::cout.flush()) throw EnvironmentError("standard output cannot be written");
  return status;
}

/// `words` is the command line, the program's name first.
int dispatch(Program& program, const std::vector<std::string>& words) {
  kernels::check_vector_level();
  const std::vector<std::string> given = asked_words(words);
  check_names(given);
  build(program);
  try {
    program.app.parse(
        std::vector<std::string>(given.rbegin(), given.rend()));  // CLI11 takes words last first
  } catch (const CLI::Success& request) {                         // --help or --version
    return answered(program.app.exit(request));
  } catch (const CLI::ParseError& error) {
    throw located(error, given.front());
  }
  const std::vector<CLI::App*> chosen = program.app.get_subcommands();
  if (chosen.empty()) throw UserError("", "a command is missing; see moelab --help");
  const VerbCall& call = program.calls.at(chosen.front());
  if (call.options.command_line) *call.options.command_line = words;
  return answered(call.run());
}

/// The text with line breaks and tabs as escapes. VisibleOutput escapes the other control characters.
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

/// A text of at most about `longest` bytes. Of a longer text it keeps the beginning and the end, three
/// quarters and one quarter of `longest`.
std::string shortened(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  // The later bytes of a UTF-8 character are 10xxxxxx; the cuts avoid them.
  const auto is_inner = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  std::size_t begin = longest / 4 * 3, end = text.size() - longest / 4;
  while (begin > 0 && is_inner(begin)) --begin;
  while (end < text.size() && is_inner(end)) ++end;
  return fmt::format("{} … ({} bytes) … {}", text.substr(0, begin), text.size(), text.substr(end));
}

/// Reports errors, one a line, and returns the exit status. With --json the report goes to stdout. Where
/// stdout fails, it goes to stderr, and the status is kEnvironmentErrorStatus.
int report(bool json, int status, const std::vector<ScenarioError>& errors) {
  if (json) {
    Json all = Json::array();
    for (const ScenarioError& error : errors) all.push_back(error_json(error));
    const Json first = {{"path", errors.front().path()}, {"message", errors.front().message()}};
    const Json answer = {{"error", first}, {"errors", all}};
    std::cout << json_text(answer) << std::endl;
    if (std::cout) return status;
    status = kEnvironmentErrorStatus;
  }
  constexpr std::size_t kLongestPath = 320, kLongestMessage = 4000;
  for (const ScenarioError& error : errors) {
    const std::string place = on_one_line(shortened(error.path(), kLongestPath));
    std::cerr << "moelab: error: " << place << (place.empty() ? "" : ": ")
              << on_one_line(shortened(error.message(), kLongestMessage)) << error.place_text() << std::endl;
  }
  if (errors.size() > 1) std::cerr << fmt::format("moelab: {}", counted(errors.size(), "error")) << std::endl;
  return status;
}

int report(bool json, int status, const std::string& message) {
  return report(json, status, {UserError("", message)});
}

/// Reports that memory is too small for `verb`. Where it is too small for this message, a shorter one.
int out_of_memory(bool json, const char* verb) {
  try {
    return report(json, kEnvironmentErrorStatus, fmt::format("not enough memory for moelab {}", verb));
  } catch (const std::bad_alloc&) {
    return tell_lack_of_memory();
  }
}

}  // namespace

int tell_lack_of_memory() noexcept {
  constexpr std::string_view kMessage = "moelab: error: not enough memory\n";
  // Several threads may run out of memory together. One reports; the others wait for it.
  static std::mutex telling;
  static bool told = false;
  const std::scoped_lock one_at_a_time(telling);
  if (!told) {
    // The exit status reports the error even where this message does not arrive.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    told = true;
  }
  return kEnvironmentErrorStatus;
}

int run_command_line(int argc, const char* const* argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writes beyond the file size limit then fail with an error
  const auto has_word = [&](std::string_view word) {
    return std::find(argv, argv + argc, word) != argv + argc;
  };
  const bool json = has_word("--json");
  const char* const verb = argc > 1 ? argv[1] : "";
  const std::unique_ptr<TerminalOutput> terminal =
      terminal_output(std::cout, has_word("--help") || has_word("-h") ? "--help" : verb, json);
  const std::unique_ptr<TerminalOutput> error_terminal = terminal_errors(std::cerr);
  const VisibleOutput answers(std::cout), errors(std::cerr);
  try {
    const std::vector<std::string> words(argv, argv + argc);
    Program program;
    return dispatch(program, words);
  } catch (const InvalidOption& error) {
    return report(json, kUserErrorStatus, errors_of(error));
  } catch (const std::bad_alloc&) {
    return out_of_memory(json, verb);
  } catch (const std::length_error&) {  // more than any memory holds
    return out_of_memory(json, verb);
  } catch (const EnvironmentError& error) {
    return report(json, kEnvironmentErrorStatus, error.what());
  } catch (const std::system_error& error) {  // of files, streams and threads
    return report(json, kEnvironmentErrorStatus, error.what());
  } catch (const std::exception& error) {
    return report(json, kEnvironmentErrorStatus,
                  fmt::format("this is a defect of the program: {}", error.what()));
  }
}

namespace {

/// Large tables pass in pieces of this size.
constexpr std::size_t kPieceBytes = 1 << 16;

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= ' ' && letter <= '~') || letter == '\n' || letter == '\t';
  });
}

}  // namespace

VisibleOutput::VisibleOutput(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(this)) {}

VisibleOutput::~VisibleOutput() {
  pass_on_rest();
  stream_.rdbuf(target_);
}

VisibleOutput::int_type VisibleOutput::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  const char byte = traits_type::to_char_type(letter);
  return write({&byte, 1}) ? letter : traits_type::eof();
}

std::streamsize VisibleOutput::xsputn(const char* letters, std::streamsize count) {
  return write({letters, static_cast<std::size_t>(count)}) ? count : 0;
}

int VisibleOutput::sync() {
  const std::lock_guard lock(mutex_);
  return pass_on_rest() ? target_->pubsync() : -1;
}

bool VisibleOutput::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, kPieceBytes);
    text.remove_prefix(piece.size());
    if (rest_.empty() && is_plain_ascii(piece)) {
      if (!pass_on(piece)) return false;
      continue;
    }
    std::string whole = rest_;
    whole += piece;
    rest_ = whole.substr(whole.size() - unfinished_bytes(whole));
    whole.resize(whole.size() - rest_.size());
    if (!pass_on(visible_text(whole))) return false;
  }
  return true;
}

bool VisibleOutput::pass_on(std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return target_->sputn(text.data(), size) == size;
}

bool VisibleOutput::pass_on_rest() {
  const std::string rest = visible_text(rest_);
  rest_.clear();
  return pass_on(rest);
}

}  // namespace moelab
