#pragma once

#include <filesystem>

#include "app/run/results.h"

namespace moelab::python {

/// What a figure of the plan shows, as data: {"kind": "lines" | "heat_map" | "rate_panels" | "embedding",
/// "id", "title", "caption", …, "panels"} with the members of the structures in plots/ but for those of the
/// page alone; null is an absent number. A claim is drawn as lines, cluster and load maps as heat maps.
/// Throws UserError at "figure" for an id that the plan does not have.
Json figure_json(const RunResults& results, const std::filesystem::path& directory, const std::string& id);

}  // namespace moelab::python
