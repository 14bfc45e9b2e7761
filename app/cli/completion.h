#pragma once

/// Completion in a shell. The shells' scripts ask the program what may stand at a place of the command line.
///
/// Static candidates come from the declarations of the verbs. The others come from the program's tables, and
/// from the scenario or run directory that the command line names. What cannot be read shortens the answer
/// and is no error.

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/verbs.h"

namespace moelab {

/// What may stand for the last of `words`, a command line up to the cursor without the program's name: verbs,
/// options, values. Every candidate begins with the last word and is a plain word for every shell. Never
/// throws.
Candidates complete(const std::vector<std::string>& words);

/// The script that a shell reads: "bash", "zsh" or "fish".
std::string completion_script(const std::string& shell);

// Completers.

Completer offer_files(Candidates::Files files);
/// Folders, and after "DIR@" the ids of its plans.
Candidates offer_run_folders(const std::string& word);
Candidates offer_metrics(const std::string& word);

// Candidates from a run directory.

/// The ids of all plans of these directories.
Candidates offer_plans(const std::vector<std::filesystem::path>& directories);
Candidates offer_cells(const RunChoice& run);
Candidates offer_journals(const std::filesystem::path& directory);

// Candidates from a scenario.

Candidates offer_profiles(const ScenarioChoice& choice);
Candidates offer_arms(const ScenarioChoice& choice);
Candidates offer_seeds(const ScenarioChoice& choice);
Candidates offer_cells(const ScenarioChoice& choice);
/// "path=" of each path that it sweeps, then the values.
Candidates offer_swept_values(const ScenarioChoice& choice, const std::string& word);
/// For --set: "model." and "train.steps=" level by level, then the values where the scenario language lists
/// them. Kinds that the scenario chooses have their fields. Paths that its sweep and arms set are left out,
/// since --set refuses them.
Candidates offer_settings(const ScenarioChoice& choice, const std::string& word);

}  // namespace moelab
