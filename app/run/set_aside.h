#pragma once

/// The way out where a cell is recorded twice with other numbers.

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

/// What was set aside.
struct SetAside {
  int records = 0;
  std::vector<std::filesystem::path> files;  ///< that hold it
};

/// For each cell with records of different numbers keeps the one in `journal`, the only journal whose name
/// begins so, or of "newest" the one that finished last. Lines with other numbers move from their journals to
/// <journal>.aside; a cell that `journal` does not hold keeps all of its records. Whole lines are never lost:
/// they are in the one file before they leave the other. Throws UserError at --keep for a name that no
/// journal, or more than one, begins with, and where a process that lives writes a journal that would change;
/// EnvironmentError when the disk refuses.
SetAside set_others_aside(const std::filesystem::path& directory, const std::string& journal);

}  // namespace moelab
