#pragma once

/// From run directories to a report.

#include <filesystem>
#include <vector>

#include "app/run/results.h"
#include "app/store/run_folder.h"
#include "plots/report.h"

namespace moelab {

/// State, summary, claims with their cells, figures and provenance of each run; and the theorem checks in an
/// answer of `moelab check --json`, unless `checks` is empty. Without runs there is no title. Throws
/// UserError when a directory holds no plan or the file no such answer.
Report make_report(const std::vector<RunAddress>& runs, const std::filesystem::path& checks);

/// Adds the plan's figures to a report: lines, heat maps and maps of clusters as data, each panel of rates as
/// lines, embeddings as they were drawn. `run.drawn` gets the places of their SVG files.
void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run);

}  // namespace moelab
