#pragma once

/// A scenario file, checked completely and expanded to its cells (arm × sweep point × seed).

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "app/scenario/cells.h"
#include "app/scenario/json.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_options.h"
#include "sim/base/error.h"

namespace moelab {

struct Scenario {
  std::string name;
  std::string title;
  std::string source;
  std::string profile;     ///< empty for the full run
  int added_seeds_to = 0;  ///< the seed count that `run --seeds` extended the run to; 0 for none
  /// Seed counts of a run with early decisions; null for other runs. {"fixed_seeds": minimum for every arm
  /// and point, "seeds": [count of each arm at each point, in the order of the cells]}.
  Json decided;
  std::optional<CrossingSearch> crossing;  ///< set if the sweep searches a crossing
  std::vector<std::string>
      files;      ///< the scenario file, then the files that it extends; empty for a document
  Json document;  ///< the file after profile and --set, before arms and sweep; written to plan.json
  std::vector<std::string> arms;
  std::vector<Arm> arm_overrides;  ///< the same arms with their overrides
  std::vector<TuneRange> tune;
  std::vector<std::string> sweep_paths;
  /// Sorted by arm, then sweep point, then seed. A search has the points placed so far.
  std::vector<Cell> cells;
  std::vector<Claim> claims;  ///< checked: arms, sweep points and operators exist
  Json written_claims;        ///< the same claims, resolved, as written to plan.json
  Json figures;               ///< array, checked and with defaults
};

/// Keeps for each arm and point the number of seeds in `decided` (see Scenario::decided); null keeps all.
/// Throws std::invalid_argument if the numbers do not match the scenario.
void keep_decided(Scenario& scenario, Json decided);

/// Adds the cells of a crossing search. `placed` has one list of values per arm and point of the other paths
/// (CrossingSearch::placed). Throws UserError if a cell is invalid, and std::invalid_argument for a wrong
/// number of lists.
void keep_placed(Scenario& scenario, std::vector<std::vector<Json>> placed);

/// Reads, checks and expands a scenario. `settings` are the "path=value" texts of --set; a value that is not
/// JSON is a string. Throws UserError. Writes no files.
Scenario load_scenario(const std::filesystem::path& file, const std::string& profile,
                       const std::vector<std::string>& settings);

/// Does the same for a parsed document.
Scenario expand_scenario(const Json& document, const std::string& profile,
                         const std::vector<std::string>& settings);

// Scenario files

/// A scenario file together with the files that it extends.
struct ScenarioFile {
  Json document;                    ///< complete, without "extends"
  std::vector<std::string> files;   ///< the file itself, then the file that it extends, and so on
  std::vector<Json> own_documents;  ///< the document written in each file
};

/// Reads a scenario file. `"extends": "base.json"`, a path relative to the file, starts from the scenario of
/// base.json. The file then overrides single fields, as --set does. Three values are replaced as a whole: an
/// object of another kind, a list, and an entry of arms, sweep, evaluations or profiles. Null removes an
/// entry. Throws UserError at "file: extends" if the base file is missing or the chain is circular, and at
/// "file: version" for another format.
ScenarioFile read_scenario_file(const std::filesystem::path& file);

/// Adds the file name to the message if an extended file, not the scenario file itself, wrote the value.
UserError at_file(const InvalidOption& error, const ScenarioFile& file);

/// Throws UserError at `place` if this program cannot read the document's version.
void check_version(const Json& document, const std::string& place);

}  // namespace moelab
