#pragma once

#include <filesystem>
#include <string>

#include "app/run/results.h"

namespace moelab {

/// The file of a cell's array; of a stack of layers the first layer's, <name>_layer0. Throws UserError where
/// it holds other bytes than were recorded.
std::filesystem::path saved_file(const RunResults& results, const std::filesystem::path& directory,
                                 const std::string& cell, const std::string& name);

}  // namespace moelab
