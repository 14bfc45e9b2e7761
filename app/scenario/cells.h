#pragma once

/// The cells of a scenario: one training run for each arm, sweep point and seed, with typed options.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario_options.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"
#include "sim/data/layout.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Test data, each with the name of its evaluation.
using NamedData = std::vector<std::pair<std::string, DataOptions>>;

/// The typed configuration of a cell. Data files must keep the contents they had when the cell got its id.
struct CellOptions {
  ExperimentOptions experiment;
  std::vector<MetricOptions> metrics;
  std::set<std::string> saved;  ///< the names in "save"
  NamedData evaluations;
  Seeds seeds;
  /// The test data of each phase, in the order of the experiment's phases.
  std::vector<NamedData> phase_evaluations = {};
};

/// One training run.
struct Cell {
  /// Hash of the seed, the non-default options, the file contents and the numerics version.
  std::string id;
  std::string arm;
  int seed = 0;                      ///< seed index, 0 … seeds.count − 1
  std::uint64_t root_seed = 0;       ///< seeds.root
  std::uint64_t shared_streams = 0;  ///< seeds.shared, encoded as in Seeds
  SweepPoint point;                  ///< swept path → value
  std::shared_ptr<const CellOptions>
      options;  ///< shared by all seeds of an arm at a point; their `seeds` are not set

  Seeds seeds() const { return {root_seed, static_cast<std::uint64_t>(seed), shared_streams}; }
};

/// The options with the cell's own seeds.
CellOptions options_of(const Cell& cell);

/// The options in one phase: the phase's data, loss, training and evaluations replace the cell's own.
CellOptions in_phase(const CellOptions& cell, std::size_t phase);

/// Reads a resolved configuration, in which each phase and evaluation has complete data. config_json() is the
/// inverse.
CellOptions read_config(const Json& config);
Json config_json(const CellOptions& cell);

/// All data of a cell: its own data and the data of its evaluations and phases.
std::vector<const DataOptions*> data_of(const CellOptions& cell);
/// The data that the last phase trains on.
const DataOptions& last_data(const CellOptions& cell);

/// Data with few clusters and the same row shape, for fast draws in checks. Files are not checked for
/// changes.
DataOptions small_data(const DataOptions& data);

/// The files that a cell reads, also for evaluations and phases, with the paths of its configuration.
std::vector<std::string> files_read_by(const Cell& cell);

// Overrides without effect

struct Arm {
  std::string name;
  std::vector<Override> overrides;
};

/// Checks that the sweep does not replace an override of an arm or a profile in every cell. An arm or the
/// sweep may change a part of the value. Throws UserError at the place of the override.
void check_not_swept(std::span<const Override> overrides, std::span<const SweepAxis> axes);

/// Checks that no arm and no swept path replaces a command-line override, even in part. A setting of the
/// command line must hold in every cell. Throws UserError at the place of the override.
void check_settings(std::span<const Override> settings, std::span<const Arm> arms,
                    std::span<const SweepAxis> axes);

/// Makes the cells of a scenario.
class CellExpansion {
 public:
  /// `base` is the configuration before arms and sweep, not resolved.
  CellExpansion(const Json& base, const SeedFields& seeds);

  /// Appends the cells of an arm for all `points` and seeds. `point_at(i)` returns the overrides of point i.
  /// Throws the errors of the first point that fails, each at its wrong override.
  void add_cells(const Arm& arm, std::size_t points,
                 const std::function<std::vector<Override>(std::size_t)>& point_at, std::vector<Cell>& cells);

  /// Throws the errors of an arm at a point, each at its wrong override.
  void check_point(const Arm& arm, const std::vector<Override>& point) const;

 private:
  /// A part of a configuration, such as "model". Most cells share their parts with other cells.
  struct Part {
    Json resolved;
    /// The part's member in the hashed text of a cell id; computed on first use.
    std::optional<std::string> identity = std::nullopt;
    CellOptions options;                          ///< only this part is set
    std::optional<Layout> layout = std::nullopt;  ///< of the rows of data; drawn on first use
  };
  struct Configuration {
    std::shared_ptr<const CellOptions> options;
    std::string before_seed, after_seed;  ///< the hashed text of a cell id around its seeds
  };
  Part& part_of(const Field& field, const Json& document);
  Configuration configuration(const Json& document);

  const Json& base_;
  int seed_count_;
  Seeds seeds_;
  std::shared_ptr<FileContents> contents_;
  std::unordered_map<std::string, Part> parts_;          ///< by name and unresolved text
  std::set<std::pair<const Part*, const Part*>> built_;  ///< data and models whose network was built once
};

}  // namespace moelab
