#pragma once

/// A scenario file, checked whole and expanded to the cells (arm × sweep point × seed) that it asks for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/json/json.h"
#include "app/json/schema.h"
#include "app/scenario/cell_config.h"
#include "app/scenario/crossing_search.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"

namespace moelab {

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

}  // namespace moelab
