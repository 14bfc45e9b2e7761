#pragma once

/// Arms whose numbers were made elsewhere: results of a training of one's own on the data that `moelab
/// sample` writes, beside the run's own cells and compared with them seed by seed.
///
/// They are kept in plans/<id>/imported/<arm>.json, sealed (seal.h): {"arm", "source", "imported_at", "rows":
/// [{"seed", "point", "state", "metrics"}]}. In tables each is an arm after the scenario's own; the `cell` of
/// its rows begins with kImportedCell, which no cell's id does.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/figures/figure_kind.h"
#include "app/run/results.h"

namespace moelab {

/// Adds the imported arms of the results' plan: a row for each seed and sweep point that the plan has,
/// `missing` where nothing was imported. Throws UserError for a damaged file.
void add_imported_arms(RunResults& results, const std::filesystem::path& directory);

/// The files of a plan's imported arms, by name.
std::vector<std::filesystem::path> imported_files(const std::filesystem::path& directory,
                                                  const std::string& plan);

struct ImportedCounts {
  int rows = 0;                          ///< imported
  int missing = 0;                       ///< seeds and sweep points of the plan without one
  bool replaced = false;                 ///< an earlier import of the arm
  std::vector<std::string> passed_over;  ///< columns: cell, arm
};

/// Imports the table `csv` of the file `source` as `arm` of the plan. Columns: seed, every swept path,
/// metrics, and if you like state (done, diverged or failed); cell and arm are passed over. An empty field is
/// a metric that does not apply. Throws UserError at --arm for a name of the plan's own arms, or that is no
/// name; at "source:line" for a seed or a sweep point that the plan does not have, two rows of one, and a
/// value that is no finite number, or below 0 of a metric that is declared positive; at "source" for a column
/// that is missing or no metric. EnvironmentError when the disk refuses.
ImportedCounts import_arm(const RunAddress& run, const std::string& arm, std::string_view csv,
                          const std::string& source);

}  // namespace moelab
