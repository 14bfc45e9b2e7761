#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

#include "app/cli/verbs.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "app/store/provenance.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

// Adding a verb is a new file that defines <name>_verb() and a line here.
// clang-format off
#define MOELAB_VERBS(entry) \
  entry(run)                \
  entry(tune)               \
  entry(plan)               \
  entry(new)                \
  entry(validate)           \
  entry(sample)             \
  entry(status)             \
  entry(claims)             \
  entry(import)             \
  entry(export)             \
  entry(table)              \
  entry(plot)               \
  entry(list)               \
  entry(schema)             \
  entry(compare)            \
  entry(agreement)          \
  entry(report)             \
  entry(reproduce)          \
  entry(verify)             \
  entry(slurm)              \
  entry(completion)         \
  entry(analyze)            \
  entry(check)              \
  entry(docs)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) Verb name##_verb();
MOELAB_VERBS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<Verb>& verbs() {
#define MOELAB_CALL(name) name##_verb(),
  static const std::vector<Verb> table = {MOELAB_VERBS(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

namespace {

constexpr int kMaximumThreads = 1024;

/// Whether what lies at `path` in a run directory is the run itself, not an output of a verb.
bool is_of_store(const std::filesystem::path& path) {
  const std::string first = path.begin()->string();
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), first) != names.end();
  };
  if (is({"journal", "sessions", "cells", "imported"})) return true;
  if (std::next(path.begin()) == path.end()) return is({"plan.json", "provenance.json", "plans"});
  // plans/<id> also has the outputs of plans that are not the last run.
  if (first != "plans") return false;
  const std::filesystem::path below = path.lexically_relative(first);
  return std::next(below.begin()) == below.end() || is_of_store(below.lexically_relative(*below.begin()));
}

}  // namespace

int thread_count(const Arguments& arguments) {
  if (arguments.threads > 0) return arguments.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

RunAddress run_address(const Arguments& arguments) {
  return {arguments.directory, arguments.plan};
}

void check_written_file(const std::filesystem::path& file, const std::string& option) {
  check_output_file(file, option);
  std::error_code unseen;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(file, unseen);
  for (std::filesystem::path above = whole.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    const bool is_run = std::filesystem::is_directory(above / "plans", unseen) ||
                        std::filesystem::is_directory(above / "journal", unseen);
    if (!is_run || !is_of_store(whole.lexically_relative(above))) continue;
    throw UserError(option,
                    fmt::format("'{}' belongs to the store of the run directory '{}', needs another file",
                                file.string(), above.string()));
  }
}

void check_measured(const std::string& metric, std::span<const RunResults> runs) {
  std::set<std::string> measured;
  for (const RunResults& run : runs) {
    for (const Json& name : run.plan.value("metrics", Json::array()))
      measured.insert(name.get<std::string>());
    for (const ResultRow& row : run.table.rows)
      for (const auto& [name, value] : row.metrics) measured.insert(name);
  }
  if (measured.empty() || measured.contains(metric)) return;
  throw UserError("--metric",
                  unknown_name("metric of these cells", metric, {measured.begin(), measured.end()}));
}

std::vector<std::string> option_names(const Verb& verb) {
  Arguments unused;
  std::vector<std::string> names = {"--help"};
  for (const Option& option : verb.call(unused).options) {
    if (option.name.starts_with("--")) names.push_back(option.name);
  }
  return names;
}

std::vector<Option> scenario_options(Arguments& arguments) {
  return {
      {"FILE", &arguments.file, "scenario file (JSON)", true, nullptr, offer_scenario_files},
      {"--profile", &arguments.profile, "named set of overrides in the scenario, such as quick", false,
       nullptr, offer_profiles},
      {"--set", &arguments.settings, "path=value: override one field (repeatable)", false, nullptr,
       offer_settings},
  };
}

std::vector<Option> run_directory_options(Arguments& arguments) {
  return {
      {"--out", &arguments.out, "run directory (default: runs/<name>[-<profile>])", false, nullptr,
       offer_folders},
      {"--seeds", &arguments.added_seeds,
       "FIRST..LAST: add seeds, such as 5..9 to 0 … 4; the run directory keeps them"},
  };
}

std::vector<Option> directory_options(Arguments& arguments) {
  return {{"DIR", &arguments.directory, "run directory, or DIR@ID for one of its plans", true, nullptr,
           offer_run_folders},
          plan_option(arguments)};
}

Option plan_option(Arguments& arguments) {
  return {"--plan",
          &arguments.plan,
          "id of one of the directory's plans, or its beginning (default: the plan last run)",
          false,
          nullptr,
          offer_plans};
}

Option threads_option(Arguments& arguments, const std::string& help) {
  return {"--threads", &arguments.threads, help, false, whole_number(1, kMaximumThreads)};
}

Option leases_option(Arguments& arguments) {
  return {"--leases", &arguments.leases,
          "take only cells that no other process on the directory is at, and wait for theirs: for any number "
          "of processes with this option"};
}

Option json_option(Arguments& arguments) {
  return {"--json", &arguments.json, "answer (and report errors) in JSON on stdout"};
}

std::vector<Option> joined(std::vector<Option> first, const std::vector<std::vector<Option>>& others) {
  for (const std::vector<Option>& options : others) first.insert(first.end(), options.begin(), options.end());
  return first;
}

// CLI11's own ranges neither speak as the rest of the program does nor refuse "nan".
std::function<std::string(const std::string&)> whole_number(int minimum, int maximum) {
  return [=](const std::string& text) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && after == end && number >= minimum && number <= maximum) return std::string();
    return fmt::format("got '{}', needs a whole number of {} to {}", text, minimum, maximum);
  };
}

std::string number_problem(const std::string& text, const std::string& what, double maximum) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && after == end && number > 0 && number <= maximum) return {};
  return fmt::format("got '{}', needs {}: a number above 0 and at most {}", text, what, maximum);
}

std::string NameCheck::operator()(const std::string& text) const {
  if (std::find(names.begin(), names.end(), text) != names.end()) return {};
  return unknown_name(what, text, names);
}

std::function<std::string(const std::string&)> one_of(const std::string& what,
                                                      std::vector<std::string> names) {
  return NameCheck{what, std::move(names)};
}

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

namespace {

/// Tables of gigabytes pass in pieces.
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
