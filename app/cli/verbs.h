#pragma once

/// The verbs of the command line, and what each of them declares.
///
/// A verb is a struct of options, a function of that struct and an entry of the table verbs(). The struct
/// declares its options once, in `bind`. The parser, the help texts, shell completion and docs/commands.md
/// all read this declaration.
///
/// The functions answer on stdout, warn on stderr and return the exit status: 0 done; 1 a cell failed or a
/// verdict is not the expected one; 130 interrupted. They throw InvalidOption (status 2) or EnvironmentError
/// (status 3).

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/run/results.h"
#include "app/scenario/scenario.h"
#include "app/store/run_folder.h"

namespace moelab {

/// What completion offers at a place of the command line: words, and files that the shell itself lists.
struct Candidates {
  struct Word {
    std::string text;
    std::string help = "";  ///< for shells that show it
  };
  enum class Files { none, scenarios, any, folders };
  std::vector<Word> words;
  Files files = Files::none;
};

/// The candidates for an option's value. `word` is the text before the cursor. The options that stand earlier
/// on the command line are set.
using Completer = std::function<Candidates(const std::string& word)>;

/// Why an option refuses a text; empty where it accepts the text.
using TextCheck = std::function<std::string(const std::string& text)>;

struct OptionRules {
  bool required = false;
  TextCheck check = nullptr;
  /// Without it, completion offers the names of one_of(), and files for paths.
  Completer candidates = nullptr;
  /// An empty text has a meaning. Other options refuse it, since the program cannot tell it from no option.
  bool takes_empty = false;
  /// One name introduces several values. The verb has no values that their place identifies.
  bool takes_several = false;
};

struct Option {
  using Value = std::variant<bool*, int*, double*, std::string*, std::filesystem::path*,
                             std::vector<std::string>*, std::vector<std::filesystem::path>*>;
  std::string name;  ///< "--out", or "FILE" for a value that its place identifies
  Value value;       ///< a bool is a flag
  std::string help;
  OptionRules rules = {};

  bool is_flag() const { return std::holds_alternative<bool*>(value); }
  bool is_list() const;
  bool is_path() const;
  /// Whether a name introduces the value. Otherwise its place does.
  bool is_named() const { return name.starts_with("--"); }
};

/// The options that a verb declares, in the order of its help text. They point into the verb's struct.
class VerbOptions {
 public:
  void add(std::string name, Option::Value value, std::string help, OptionRules rules = {}) {
    list.push_back({std::move(name), value, std::move(help), std::move(rules)});
  }

  std::vector<Option> list;
  std::vector<std::string>* command_line = nullptr;  ///< receives all words, the program's name first
};

/// A verb that the user chose: its options, and what it does once they are set.
struct VerbCall {
  VerbOptions options;
  std::function<int()> run;
};

/// An entry of the table.
struct Verb {
  std::string name;
  std::string help;     ///< one line
  std::string example;  ///< a command line without "moelab "
  std::function<VerbCall()> call;
};

/// The entry of a verb whose struct is `Options`.
template <class Options>
Verb make_verb(std::string name, std::string help, std::string example, int (*run)(const Options&)) {
  const auto call = [run] {
    const auto options = std::make_shared<Options>();
    VerbCall made{{}, [options, run] { return run(*options); }};
    options->bind(made.options);
    return made;
  };
  return {std::move(name), std::move(help), std::move(example), call};
}

/// The table. A new verb is a file with a struct, a function and <name>_verb(), and a line in verbs.cpp.
const std::vector<Verb>& verbs();

/// The named options of a verb, "--help" first.
std::vector<std::string> option_names(const Verb& verb);

// Checks of an option's text.

/// Accepts the names of a list, which completion offers.
struct NameCheck {
  std::string what;  ///< "shell"
  std::vector<std::string> names;
  std::string operator()(const std::string& text) const;
};

TextCheck one_of(const std::string& what, std::vector<std::string> names);
TextCheck whole_number(int minimum, int maximum);
/// A number in (0, maximum]; `what` names its unit.
TextCheck positive_number(const std::string& what, double maximum);

// Options that several verbs share.

/// FILE --profile --set: a scenario.
struct ScenarioChoice {
  std::filesystem::path file;
  std::string profile;                ///< empty for the full run
  std::vector<std::string> settings;  ///< "path=value"

  void bind(VerbOptions& options);
  Scenario load() const { return load_scenario(file, profile, settings); }
};

/// A cell by its id, or by arm, seed and sweep point. Each of the latter that is left out is the first.
struct CellChoice {
  std::string cell, arm, seed;
  std::vector<std::string> at;  ///< "path=value"
};

/// The scenario's cell. Throws UserError at the option of `moelab sample` that fits no cell: --cell, --arm,
/// --seed, --at.
const Cell& chosen_cell(const Scenario& scenario, const CellChoice& choice);

/// DIR --plan: a plan of a run directory.
struct RunChoice {
  std::filesystem::path directory;
  std::string plan;  ///< the beginning of an id; empty for the plan last run

  void bind(VerbOptions& options);
  RunAddress address() const { return {directory, plan}; }
};

/// DIR… --plan: several run directories.
struct RunsChoice {
  std::vector<std::filesystem::path> directories;
  std::string plan;

  void bind(VerbOptions& options, const std::string& help, bool required = true);
};

void bind_threads(VerbOptions& options, int& threads, const std::string& help);
void bind_json(VerbOptions& options, bool& json);

/// The number of threads asked for; for 0, the number of processors.
int thread_count(int asked);

/// Calls work(0) … work(count − 1) on up to `threads` threads. A free thread takes the next call. After all
/// threads have ended, throws the error of the first call that failed. `what` names the work ("checks") in a
/// note if the system starts fewer threads.
void run_in_parallel(std::size_t count, int threads, const std::string& what,
                     const std::function<void(std::size_t)>& work);

// What verbs print and write.

/// Prints an answer of --json.
void print_json(const Json& answer, int indent = 2);

/// The names of files as a list.
Json file_names(const std::vector<std::filesystem::path>& files);

/// Prints {"files": […]}, or a line for each file.
void print_files(const std::vector<std::filesystem::path>& files, bool json);

/// Writes an answer to `file`, or prints it where `file` is empty.
void write_answer(const std::filesystem::path& file, const std::string& text);

/// Throws UserError at `option`, which named `file`, where replace_file would refuse it (check_output_file)
/// or where a run directory keeps its store: plans, journals, sessions and saved arrays.
void check_written_file(const std::filesystem::path& file, const std::string& option);

/// Throws UserError at `option` where it is given together with `other`.
void refuse_beside(bool is_given, const std::string& option, const std::string& other);

/// Throws UserError at --metric for a name that is no metric.
void check_metric_name(const std::string& metric);

/// Throws UserError at --metric where the runs have recorded cells, but neither their plans nor their cells
/// have the metric.
void check_measured(const std::string& metric, std::span<const RunResults> runs);

}  // namespace moelab
