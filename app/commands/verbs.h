#pragma once

/// The axis of verbs: what stands after `moelab` on the command line. They answer on stdout, warn on stderr,
/// return the exit status (0 done, 1 a cell failed or a check's verdict is not the expected one, 130
/// interrupted) and throw InvalidOption (2) or EnvironmentError (3).

#include <functional>
#include <variant>

#include "app/commands/arguments.h"
#include "app/commands/completion.h"

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

}  // namespace moelab
