#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

/// Draws the figures of a run directory and prints the files written. Returns 0; throws UserError when the
/// directory holds no plan, EnvironmentError when gnuplot fails.
int run_plot_command(const std::filesystem::path& directory, bool json);

/// A line for each figure: its SVG file, and which others lie beside it.
std::string figures_text(const std::vector<std::filesystem::path>& files);

}  // namespace moelab
