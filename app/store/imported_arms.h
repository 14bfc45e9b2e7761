#pragma once

/// Imported arms: results of a training outside moelab, on the data that `moelab sample` writes. They are
/// compared with the run's own cells seed by seed.
///
/// Each arm is a sealed file (app/store/durable_file.h), plans/<id>/imported/<arm>.json:
///
///   {"arm", "source", "imported_at", "rows": [{"seed", "point", "state", "metrics"}]}
///
/// In tables, imported arms follow the scenario's arms. The `cell` of an imported row begins with
/// kImportedCell, which no cell id begins with.

#include <filesystem>
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
  std::vector<std::string> passed_over;  ///< ignored columns: cell, arm
};

/// Imports the table `csv` from the file `source` as `arm` of the plan.
///
/// Required columns: seed, every swept path, and metrics. Optional column: state (done, diverged or failed).
/// The columns cell and arm are ignored. An empty field means that the metric does not apply.
///
/// Throws UserError
/// - at --arm if the name is invalid or belongs to an arm of the plan;
/// - at "source:line" if the plan does not have the seed or the sweep point, or if a row repeats them;
/// - at "source:line" if a value is not a finite number, or is negative for a metric that is declared
///   positive;
/// - at "source" if a column is missing or is not a metric, or if the table has no rows.
///
/// Throws EnvironmentError when the disk refuses.
ImportedCounts import_arm(const RunAddress& run, const std::string& arm, std::string_view csv,
                          const std::string& source);

}  // namespace moelab
