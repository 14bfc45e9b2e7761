#pragma once

#include <filesystem>

namespace moelab {

/// Draws the figures of a run directory and prints the files written. Returns 0; throws UserError when the
/// directory holds no plan, EnvironmentError when gnuplot fails.
int run_plot_command(const std::filesystem::path& directory, bool json);

}  // namespace moelab
