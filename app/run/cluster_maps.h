#pragma once

/// From the arrays that a run saved to maps of clusters against experts.

#include <filesystem>

#include "app/run/results.h"
#include "plots/heat_map.h"

namespace moelab {

/// What the cells of such a map hold.
inline constexpr const char* kMeanRouting = "routing";       ///< E[r_e(x) | c]
inline constexpr const char* kRouterCosine = "router_rows";  ///< cos(w_e, E[x | c])

/// One figure of plan["figures"] of kind "cluster_map": {id, value, title, where, arms}. A panel is an arm's
/// first seed that is done, at the last sweep point of `where`: a row for each cluster, a column for each
/// expert, rows in the order of their largest entry's column, so that one expert to a cluster is a staircase.
/// Needs the arrays of "save": ["routing"] in `directory`, and "weights" for router rows; throws UserError
/// where they are missing.
HeatMap build_cluster_map(const Json& description, const RunResults& results,
                          const std::filesystem::path& directory);

}  // namespace moelab
