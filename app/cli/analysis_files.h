#pragma once

/// The files of `analyze --out`.

#include <filesystem>
#include <vector>

#include "app/cli/analyze.h"

namespace moelab {

/// Writes the analysis into a folder and returns the files. Tables are layers.csv, experts.csv and
/// definitions.csv. Each kind of matrix has a table of its own. analysis.json and analysis.npz hold
/// everything. report.html is a page with figures. With `draws`, gnuplot also paints the figures as files.
/// Throws UserError at --out. Throws EnvironmentError if a file cannot be written.
std::vector<std::filesystem::path> write_analysis(const ArrayAnalysis& analysis,
                                                  const std::filesystem::path& folder, bool draws);

}  // namespace moelab
