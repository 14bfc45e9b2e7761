#pragma once

/// Makes a report from run directories.

#include <filesystem>
#include <vector>

#include "app/run/results.h"
#include "app/store/run_folder.h"
#include "plots/report/report.h"

namespace moelab {

/// Returns a report with the state, summary, claims with their cells, figures and provenance of each run. If
/// `checks` is not empty, the report also has the theorem checks in this file, an output of `moelab check
/// --json`. A report without runs has no title. Throws UserError if a directory has no plan, or if the file
/// is no such output.
Report make_report(const std::vector<RunAddress>& runs, const std::filesystem::path& checks);

/// Adds the plan's figures to `run`, and the paths of their SVG files to `run.drawn`.
void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run);

}  // namespace moelab
