#pragma once

/// Imported arms: results of a training outside moelab, on the data that `moelab sample` writes. They are
/// compared with the run's own cells seed by seed.
///
/// Each arm is a sealed file (app/store/durable_file.h), plans/<id>/imported/<arm>.json:
///
///   {"arm", "source", "imported_at", "positive", "rows": [{"seed", "point", "state", "metrics"}]}
///
/// In tables, imported arms follow the scenario's arms. The `cell` of an imported row begins with
/// kImportedCell, which no cell id begins with.

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/results.h"
#include "plots/kinds/figure_kind.h"

namespace moelab {

/// Adds the imported arms of the plan to `results`. Each arm gets a row for every seed and sweep point of the
/// plan. A row without imported values is `missing`. Throws UserError for a damaged file.
void add_imported_arms(RunResults& results, const std::filesystem::path& directory);

/// The files of a plan's imported arms, sorted by name.
std::vector<std::filesystem::path> imported_files(const std::filesystem::path& directory,
                                                  const std::string& plan);

struct ImportedCounts {
  int rows = 0;                          ///< imported rows
  int missing = 0;                       ///< seeds and sweep points of the plan without an imported row
  bool replaced = false;                 ///< the import replaced an earlier import of the arm
  std::vector<std::string> passed_over;  ///< ignored columns: cell, arm, the index of pandas
  std::vector<std::string> ignored;      ///< columns that are no metrics, by ImportRules::ignores_unknown
};

/// How an import reads columns that are not named as moelab names them.
struct ImportRules {
  std::map<std::string, std::string> names;  ///< the name of a column in the table → its name in moelab
  std::set<std::string> positive;            ///< metrics of the user's own that are above zero by definition
  bool ignores_unknown = false;              ///< passes over other columns that are no metrics
};

/// Imports the table `csv` from the file `source` as `arm` of the plan.
///
/// Required columns: seed, every swept path, and metrics. Optional column: state (done, diverged or failed).
/// Metrics may be absent if no row is done. An empty field of a path that some arm of the scenario does not
/// sweep means every value of the path. Swept booleans may have capital letters ("True").
/// The columns cell and arm, and the index of pandas, are ignored. A metric of the user's own is a name that
/// `rules` map a column to, or declare positive. An empty field, NaN, NA, None or null means that the metric
/// does not apply. An infinite value means so, too, and without a state the row is diverged.
///
/// Throws UserError
/// - at --arm if the name is invalid or belongs to an arm of the plan;
/// - at "source:line" if the plan does not have the seed or the sweep point, or if a row repeats them;
/// - at "source:line" if a value is not a number, or is negative for a metric that is declared positive;
/// - at "source" if a column is missing or is not a metric, or if the table has no rows;
/// - at --map for a column that the table does not have.
///
/// Throws EnvironmentError when the disk refuses.
ImportedCounts import_arm(const RunAddress& run, const std::string& arm, std::string_view csv,
                          const std::string& source, const ImportRules& rules = {});

/// Removes an imported arm from the plan. Throws UserError at --arm if the plan has no imported arm of this
/// name, and EnvironmentError when the disk refuses.
void remove_imported_arm(const RunAddress& run, const std::string& arm);

}  // namespace moelab
