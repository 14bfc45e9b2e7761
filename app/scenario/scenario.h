#pragma once

/// A scenario file, checked completely and expanded to its cells (arm × sweep point × seed).

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "app/scenario/cells.h"
#include "app/scenario/errors.h"
#include "app/scenario/json.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_options.h"
#include "plots/kinds/figure_kind.h"
#include "sim/base/error.h"

namespace moelab {

/// Seed counts of a run whose claims decide how many seeds it has.
struct DecidedSeeds {
  int fixed_seeds = 0;     ///< minimum for every arm and point
  std::vector<int> seeds;  ///< count of each arm at each point, in the order of the cells

  bool operator==(const DecidedSeeds&) const = default;
  /// Reads the counts of a plan, as to_json() writes them. Null gives none.
  static std::optional<DecidedSeeds> of_plan(const Json& decided);
  Json to_json() const;
};

/// What a plan stores of a scenario in addition to the cells.
struct PlanHead {
  std::string name;
  std::string title;
  std::string source;
  std::string profile;   ///< empty for the full run
  Json document;         ///< the file after profile and --set, before arms and sweep; written to plan.json
  Json written_claims;   ///< the claims, resolved, as written to plan.json
  Json written_figures;  ///< the same for the figures
  std::vector<std::string> arms;
  std::vector<std::string> sweep_paths;
  int added_seeds_to = 0;               ///< the seed count that `run --seeds` extended the run to; 0 for none
  std::optional<DecidedSeeds> decided;  ///< set for a run with early decisions
  std::optional<CrossingSearch> crossing;  ///< set if the sweep searches a crossing

  // Read from the document and the written claims
  std::vector<Claim> claims;           ///< of a scenario, checked: arms, sweep points and operators exist
  std::vector<FigureOptions> figures;  ///< of a scenario, checked
  std::vector<std::string> notes;
  std::map<std::string, std::string> labels;  ///< display names
  std::vector<std::string> shown_paths;       ///< swept paths; of paths that vary together only the first
  std::uint64_t root_seed = 1;
  std::string task = "mse";  ///< loss.task
  std::optional<StudyObjective> objective;

  /// Reads these members. Skips fields of the document with wrong types. Throws InvalidOption for a claim.
  void read_document();
};

/// The metric that the main table, the live view and `tune` use.
struct MainMetric {
  std::string name;
  bool is_maximized = false;  ///< the greatest value is the best
  std::string reason;         ///< "the scenario's objective", "the first figure's metric"
};

/// The objective. Without one, the metric of the first figure: y, or the value of a heat map. If this figure
/// shows no metric, test_nmse_top1, or test_loss_eval for a model trained on classes.
MainMetric main_choice(const PlanHead& plan);

/// Its name.
std::string main_metric(const PlanHead& plan);

/// A sentence that says which metric was taken and why. Empty for a plan with an objective.
std::string main_metric_note(const PlanHead& plan);

struct Scenario : PlanHead {
  std::vector<std::string>
      files;  ///< the scenario file, then the files that it extends; empty for a document
  std::vector<std::string> profiles;  ///< their names
  std::vector<Arm> arm_overrides;     ///< the arms with their overrides
  std::vector<TuneRange> tune;
  /// Sorted by arm, then sweep point, then seed. A search has the points placed so far.
  std::vector<Cell> cells;
};

/// Keeps for each arm and point the number of seeds in `decided`; nothing keeps all. Throws
/// std::invalid_argument if the numbers do not match the scenario.
void keep_decided(Scenario& scenario, std::optional<DecidedSeeds> decided);

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

/// The document without its number of seeds.
Json without_seed_count(Json document);

// Scenario files

/// A scenario file together with the files that it extends.
struct ScenarioFile {
  Json document;                    ///< complete, without "extends"
  std::vector<std::string> files;   ///< the file itself, then the file that it extends, and so on
  std::vector<Json> own_documents;  ///< the document written in each file
  std::vector<std::string> texts;   ///< the text of each file
};

/// Reads a scenario file. `"extends": "base.json"`, a path relative to the file, starts from the scenario of
/// base.json. The file then overrides single fields, as --set does. Three values are replaced as a whole: an
/// object of another kind, a list, and an entry of arms, sweep, evaluations or profiles. Null removes an
/// entry. Names of data files are relative to the file that contains them. Throws UserError at "file:
/// extends" if the base file is missing or the chain is circular, and at "file: version" for another format.
ScenarioFile read_scenario_file(const std::filesystem::path& file);

/// A document whose names of files are relative to the working directory, for a file in `folder`.
Json moved_to(const std::filesystem::path& folder, Json document);

/// All errors with their lines and columns. If an extended file, not the scenario file itself, wrote the
/// value, the message names that file.
ScenarioErrors at_file(const InvalidOption& errors, const ScenarioFile& file);

/// Checks the cells of every profile of a scenario that load_scenario() accepts. Throws ScenarioErrors.
void check_cells_of_profiles(const ScenarioFile& file);

/// Throws UserError at `place` if this program cannot read the document's version.
void check_version(const Json& document, const std::string& place);

// A scenario while a user writes it: the parts of a document that are valid so far. Completion uses it.

struct ScenarioDraft {
  Json document = Json::object();
  NamedValues<Json> profiles, arms, evaluations;  ///< overrides by name
  std::size_t seeds = 0;                          ///< 0 without a valid number
  std::vector<std::string> fixed_paths;           ///< paths that sweep and arms set; --set refuses them

  /// Throws UserError for an invalid sweep.
  std::vector<SweepAxis> axes() const;
  /// Whether the data come from files. Throws UserError for invalid data.
  bool reads_files() const;
};

/// Reads a scenario and applies its profile and the "path=value" settings, as far as they are valid. Empty if
/// the file cannot be read. Reads no file except the scenario and those that it extends.
ScenarioDraft read_draft(const std::filesystem::path& file, const std::string& profile,
                         const std::vector<std::string>& settings);

}  // namespace moelab
