#pragma once

#include <filesystem>

#include "app/run/results.h"
#include "plots/report.h"

namespace moelab {

/// Adds the plan's figures to a report: lines, heat maps and maps of clusters as data, each panel of rates as
/// lines, embeddings as they were drawn. `run.drawn` gets the places of their SVG files.
void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run);

}  // namespace moelab
