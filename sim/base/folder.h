#pragma once

/// The entries of a folder.

#include <filesystem>
#include <vector>

namespace moelab {

/// The entries of a folder, sorted; none if the folder does not exist. Throws EnvironmentError if the folder
/// cannot be listed for another reason.
///
/// Use it in place of std::filesystem::directory_iterator, which ends the program where memory is refused.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace moelab
