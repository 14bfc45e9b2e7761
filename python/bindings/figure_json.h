#pragma once

#include <filesystem>

#include "app/run/results.h"

namespace moelab::python {

/// The data and layout of a figure in the plan, in the format of data_json() in plots/. A claim is a line
/// figure; cluster maps and load maps are heat maps. Throws UserError at "figure" for an unknown id.
Json figure_json(const RunResults& results, const std::filesystem::path& directory, const std::string& id);

}  // namespace moelab::python
