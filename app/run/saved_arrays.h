#pragma once

/// What figures of single cells draw: the arrays that a cell saved.

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/results.h"
#include "sim/base/types.h"

namespace moelab {

/// The arm's first seed that is done, at the last sweep point of `where`; null where there is none.
const ResultRow* shown_row(const ResultTable& table, const std::string& arm, const Json& where);

/// The file of a cell's array; of a stack of layers the first layer's, <name>_layer0. Throws UserError where
/// it is missing, or holds other bytes than were recorded.
std::filesystem::path saved_file(const RunResults& results, const std::filesystem::path& directory,
                                 const std::string& cell, const std::string& name);

/// The rows of an array (n, …, width), tokens flattened.
Matrix read_rows(const std::filesystem::path& file);

}  // namespace moelab
