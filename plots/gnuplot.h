#pragma once

/// Runs the gnuplot program.

#include <filesystem>
#include <string>

namespace moelab {

/// Runs `gnuplot -d script` with `directory` as its working directory, without a shell; `script` is relative
/// to it. Throws EnvironmentError when the program is missing or fails, with what it wrote to its error
/// stream.
void run_gnuplot(const std::filesystem::path& directory, const std::string& script);

}  // namespace moelab
