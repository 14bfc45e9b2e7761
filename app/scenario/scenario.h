#pragma once

/// A scenario file, checked whole and expanded to the cells (arm × sweep point × seed) that it asks for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/scenario/json.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"

namespace moelab {

// The configuration of a cell, of which a scenario of very many cells keeps equal parts once.

/// Every field that affects numbers but the seed, defaults filled in: {"data", "model", "loss", "train",
/// "metrics", "save", "evaluations": {name: its data}}. Copies share their parts, which do not change.
class CellConfig {
 public:
  CellConfig() = default;
  CellConfig(const Json& config);

  /// A part by its name. Throws std::out_of_range for one that there is not.
  const Json& at(std::string_view name) const;
  /// All of them as one object.
  Json json() const;

  /// A part's name and value; those of configurations that SharedParts made are one object where they are
  /// equal.
  using Part = std::pair<std::string, Json>;
  using Parts = std::vector<std::shared_ptr<const Part>>;
  /// None where there is nothing.
  const Parts* parts() const { return parts_.get(); }

 private:
  friend class SharedParts;
  std::shared_ptr<const Parts> parts_;
};

/// Makes configurations that share the parts in which they are equal, to the last digit. Several threads may
/// ask.
class SharedParts {
 public:
  CellConfig config(const Json& config);
  /// The same where all but the `changed` parts are those of `before`, one of these.
  CellConfig config(const Json& config, const CellConfig& before, const std::set<std::string>& changed);

 private:
  std::shared_ptr<const CellConfig::Part> shared(const std::string& name, const Json& value);

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const CellConfig::Part>> known_;  ///< by name and text
};

/// One training run.
struct Cell {
  /// Hash of the seed, of `config` without its defaults, files by their content, and of the numerics version.
  std::string id;
  std::string arm;
  int seed = 0;                                     ///< seed index, 0 … seeds.count − 1
  std::uint64_t root_seed = 0;                      ///< seeds.root
  std::uint64_t shared_streams = 0;                 ///< seeds.shared, as Seeds has them
  std::vector<std::pair<std::string, Json>> point;  ///< swept path → value
  CellConfig config;                                ///< shared by the cells of an arm at a point
  std::shared_ptr<FileContents> contents;  ///< of the files that are read: those that `id` stands for

  Seeds seeds() const { return {root_seed, static_cast<std::uint64_t>(seed), shared_streams}; }
};

struct Scenario {
  std::string name;
  std::string title;
  std::string source;
  std::string profile;     ///< empty for the full run
  int added_seeds_to = 0;  ///< the count of seeds that `run --seeds` brought the run to; 0 for none
  /// Of a run that was decided, null otherwise: {"fixed_seeds": those that every arm and point has at least,
  /// "seeds": [those of each arm at each point, in the order of the cells]}.
  Json decided;
  std::optional<CrossingSearch> crossing;  ///< of a sweep that searches one
  std::vector<std::string> files;  ///< the scenario file, then those that it extends; none for a document
  Json document;  ///< the file after profile and --set, before arms and sweep; written to plan.json
  std::vector<std::string> arms;
  std::vector<std::string> sweep_paths;
  /// Arm-major, then sweep point, then seed; of a search the points that it has placed.
  std::vector<Cell> cells;
  Json claims;   ///< array, checked: arms, sweep points and operators exist
  Json figures;  ///< array, checked and with defaults
};

/// Leaves of each arm and point the seeds that `decided` (see above) gives them; null leaves all. Throws
/// std::invalid_argument where they are not those of the scenario.
void keep_decided(Scenario& scenario, Json decided);

/// Gives a scenario that searches a crossing the cells at these values of its path, one list for each arm and
/// point of the other paths (CrossingSearch::placed). Throws UserError where cells do not fit, and
/// std::invalid_argument for other numbers of lists.
void keep_placed(Scenario& scenario, std::vector<std::vector<Json>> placed);

/// The shape of a whole scenario file (the contract in the reference documentation).
const Shape& scenario_shape();

/// The JSON Schema of scenario files. One that extends another needs no field but its name, and its own part
/// of the others is not checked.
Json scenario_file_schema();

/// Reads, checks and expands a scenario. `settings` are "path=value" texts of --set, the value being JSON or,
/// failing that, a string. Throws UserError; nothing is written.
Scenario load_scenario(const std::filesystem::path& file, const std::string& profile,
                       const std::vector<std::string>& settings);

/// The same from a parsed document; `source` names it in errors.
Scenario expand_scenario(const Json& document, const std::string& profile,
                         const std::vector<std::string>& settings);

// The part of a scenario's shape that a cell's configuration holds.

/// {"data", "model", "loss", "train", "metrics", "save", "evaluations"}: what arms and sweeps may change.
const Shape& config_shape();
/// Of "data", and of what evaluations measure on.
const Shape& data_shape();

// A scenario as its file writes it, with what it takes over from the files that it extends.

/// The version of the scenario format that this program reads.
constexpr int kScenarioVersion = 1;

struct ScenarioFile {
  Json document;                    ///< complete: without "extends"
  std::vector<std::string> files;   ///< the file itself first, then what it extends, and so on
  std::vector<Json> own_documents;  ///< what each of them writes
};

/// Reads a scenario file. `"extends": "base.json"`, a path relative to the file, starts from that file's
/// scenario: what stands here is set there, field by field as by --set; an object that names another kind
/// than the one it meets, a list, and an entry of arms, sweep, evaluations and profiles are taken whole; null
/// removes. Throws UserError at "file: extends" when that file is missing or extends, in turn, this one, and
/// at "file: version" for another format.
ScenarioFile read_scenario_file(const std::filesystem::path& file);

/// The error with the name of the file in its message where not the scenario's own file wrote the value.
UserError at_file(const InvalidOption& error, const ScenarioFile& file);

/// Throws UserError at `place` unless the document is of a version that this program reads.
void check_version(const Json& document, const std::string& place);

}  // namespace moelab
