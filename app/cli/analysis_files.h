#pragma once

/// What `analyze` shows of an analysis: its figures, and the files of --out.

#include <cstddef>
#include <filesystem>
#include <vector>

#include "app/cli/analyze.h"
#include "plots/painters/gnuplot.h"

namespace moelab {

/// Figures of loads and of metrics over layers. Heat maps show domains with experts and pairs of experts.
/// They also show pairs of layers. The analysis must have the data. With many layers, a figure shows evenly
/// spaced ones and its caption says so.
std::vector<Drawing> analysis_drawings(const ArrayAnalysis& analysis);

/// At most `most` evenly spaced places below `count`. The first and the last place are among them.
std::vector<std::size_t> spread_places(std::size_t count, std::size_t most);

/// Writes the analysis into a folder and returns the files. Tables are layers.csv, experts.csv and
/// definitions.csv. Each kind of matrix has one table. analysis.json and analysis.npz hold
/// everything. report.html is a page with figures. With `draws`, gnuplot also paints the figures as files.
/// Throws UserError at --out. Throws EnvironmentError if a file cannot be written.
std::vector<std::filesystem::path> write_analysis(const ArrayAnalysis& analysis,
                                                  const std::filesystem::path& folder, bool draws);

}  // namespace moelab
