#pragma once

/// The axis of verbs: what stands after `moelab` on the command line. They answer on stdout, warn on stderr,
/// return the exit status (0 done, 1 a cell failed or a check's verdict is not the expected one, 130
/// interrupted) and throw InvalidOption (2) or EnvironmentError (3).

#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/cli/arguments.h"
#include "app/cli/completion.h"
#include "app/scenario/scenario.h"
#include "sim/data/problem.h"

namespace moelab {

/// Something that a verb takes.
struct Option {
  using Value = std::variant<bool*, int*, double*, std::string*, std::filesystem::path*,
                             std::vector<std::string>*, std::vector<std::filesystem::path>*>;
  std::string name;  ///< "--out"; "FILE" of what is known by its place
  Value value;       ///< a bool is a flag
  std::string help;
  bool required = false;
  /// Why a text is refused; empty where it is not.
  std::function<std::string(const std::string&)> check = nullptr;
  /// What completion offers for the value. Without it: the names of one_of(), and files for paths.
  Completer completes = nullptr;
  /// An empty text means something; elsewhere it is refused, since it would be taken for no option.
  bool takes_empty = false;
};

/// A verb that is chosen: its options, and what it does when these are read.
struct VerbCall {
  std::vector<Option> options;
  std::function<int()> run;
};

/// An entry of the table.
struct Verb {
  std::string name;
  std::string help;     ///< one line
  std::string example;  ///< of a command line, after "moelab "
  /// Options go into the arguments, or into values that the call keeps.
  VerbCall (*call)(Arguments&);
};

/// The table: adding a verb is a new file and a line in verbs.cpp.
const std::vector<Verb>& verbs();

/// Options of a verb as they are written, "--help" first.
std::vector<std::string> option_names(const Verb& verb);

/// Options that several verbs have.
std::vector<Option> scenario_options(Arguments& arguments);       ///< FILE --profile --set
std::vector<Option> run_directory_options(Arguments& arguments);  ///< --out --seeds
std::vector<Option> directory_options(Arguments& arguments);      ///< DIR --plan
Option plan_option(Arguments& arguments);                         ///< --plan
Option threads_option(Arguments& arguments, const std::string& help);
Option leases_option(Arguments& arguments);  ///< --leases
Option json_option(Arguments& arguments);

/// A list of options from parts.
std::vector<Option> joined(std::vector<Option> first, const std::vector<std::vector<Option>>& others);

/// A check that knows the texts that it takes.
struct NameCheck {
  std::string what;  ///< "shell"
  std::vector<std::string> names;
  std::string operator()(const std::string& text) const;
};

/// Checks of options' texts.
std::function<std::string(const std::string&)> whole_number(int minimum, int maximum);
std::function<std::string(const std::string&)> one_of(const std::string& what,
                                                      std::vector<std::string> names);

// How a caller names a cell of a scenario.

/// By its id, or by arm, seed and sweep point, the first of each that is left out.
struct CellChoice {
  std::string cell, arm, seed;
  std::vector<std::string> at;  ///< "path=value"
};

/// The scenario's cell. Throws UserError at the option of `moelab sample` that fits none: --cell, --arm,
/// --seed, --at.
const Cell& chosen_cell(const Scenario& scenario, const CellChoice& choice);

/// The data of a cell: what a phase trains and tests on.
struct SampledSets {
  std::string prefix;  ///< "<phase>." of a phase before the last; empty as for metrics
  Layout layout;
  std::optional<Dataset> train;  ///< none of fresh points at every step
  Dataset test;                  ///< contaminated as data.contamination says, unless by an attack
  std::string attack;            ///< that needs the trained model; empty for none
};

/// Those of every phase, the last at the end; of a cell without phases its own.
std::vector<SampledSets> sampled_sets(const Cell& cell);
/// Those of the last phase alone.
SampledSets last_sampled_sets(const Cell& cell);

// The command line: from arguments to an exit status.

/// Parses the arguments, runs the verb and turns every exception into a message and a status: 0 done; 1 done,
/// but a cell failed, (`claims`) a claim is refuted or (`check`) a verdict is not the expected one; 2 bad
/// input, a wrong MOELAB_VECTOR_LEVEL included, whatever the arguments; 3 the environment failed, a standard
/// output that cannot be written included; 130 interrupted.
int run_command_line(int argc, const char* const* argv);

/// Says on stderr that there is not enough memory, once and with none of it; the exit status for that.
/// Threads may call it at the same time.
int tell_lack_of_memory() noexcept;

// The one place through which all that the program prints passes.

/// While it lives, what is written to `stream` arrives as visible_text of it, so that no text of a scenario,
/// a file name or a message commands the terminal; JSON stays the same JSON. It may be used by several
/// threads.
class VisibleOutput : public std::streambuf {
 public:
  explicit VisibleOutput(std::ostream& stream);
  ~VisibleOutput() override;
  VisibleOutput(const VisibleOutput&) = delete;
  VisibleOutput& operator=(const VisibleOutput&) = delete;

 protected:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* letters, std::streamsize count) override;
  int sync() override;

 private:
  bool write(std::string_view text);
  bool pass_on(std::string_view text);
  bool pass_on_rest();

  std::ostream& stream_;
  std::streambuf* target_;
  std::mutex mutex_;
  std::string rest_;  ///< the beginning of a character whose other bytes are still to come
};

}  // namespace moelab
