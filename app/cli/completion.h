#pragma once

/// Completion in a shell: the shells' scripts ask the program what may stand at a place of the command line.
/// It is answered from the program's tables and the scenario, or the run directory, that the line names;
/// what cannot be read makes the answer shorter, and is no error.

#include <string>
#include <vector>

#include "app/cli/arguments.h"
#include "app/scenario/json.h"

namespace moelab {

/// What may stand at a place: words, or files that the shell itself looks up.
struct Candidates {
  struct Word {
    std::string text;
    std::string help = "";  ///< for shells that show it
  };
  enum class Files { none, scenarios, any, folders };
  std::vector<Word> words;
  Files files = Files::none;
};

/// The candidates for the value of an option, of which those that begin with `word` are used. `given` holds
/// what stands before it.
using Completer = Candidates (*)(const Arguments& given, const std::string& word);

Candidates offer_scenario_files(const Arguments& given, const std::string& word);
Candidates offer_folders(const Arguments& given, const std::string& word);
/// Folders, and behind "DIR@" the ids of its plans.
Candidates offer_run_folders(const Arguments& given, const std::string& word);
Candidates offer_metrics(const Arguments& given, const std::string& word);
/// Of the scenario given.
Candidates offer_profiles(const Arguments& given, const std::string& word);
Candidates offer_arms(const Arguments& given, const std::string& word);
Candidates offer_seeds(const Arguments& given, const std::string& word);
Candidates offer_cells_of_scenario(const Arguments& given, const std::string& word);
/// "path=" of each path that it sweeps, then the values.
Candidates offer_swept_values(const Arguments& given, const std::string& word);
/// For --set: "model." and "train.steps=" level by level, then the values where they are enumerated. Kinds
/// that the scenario chooses have their fields; what its sweep and arms set is left out, as --set refuses it.
Candidates offer_settings(const Arguments& given, const std::string& word);
/// Of the run directory given.
Candidates offer_cells_of_run(const Arguments& given, const std::string& word);
Candidates offer_journals(const Arguments& given, const std::string& word);
/// Ids of plans.
Candidates offer_plans(const Arguments& given, const std::string& word);

/// What may stand for the last of `words`, a command line up to the cursor without the program's name: verbs,
/// options, values. Words that begin with it and that no shell takes for anything but words. Never throws.
Candidates complete(const std::vector<std::string>& words);

/// The script that a shell reads: "bash", "zsh" or "fish".
std::string completion_script(const std::string& shell);

// The scenario that a command line names, for completion.

/// The scenario with its profile and --set as far as these can be applied; an empty object where the file
/// cannot be read. Reads no file but the scenario and what it extends.
Json given_scenario(const Arguments& given);

/// The object at a key of the scenario; an empty one where there is none.
Json object_at(const Json& scenario, const std::string& key);

/// The paths that the scenario's sweep and arms set, which --set refuses.
std::vector<std::string> fixed_paths(const Json& scenario);

}  // namespace moelab
