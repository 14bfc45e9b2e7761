#pragma once

/// From the arrays that a run saved to maps of clusters against experts.

#include "app/figures/figure_kind.h"
#include "plots/heat_map.h"

namespace moelab {

/// One figure of plan["figures"] of kind "cluster_map": {id, value, title, where, arms}. A panel is an arm's
/// first seed that is done, at the last sweep point of `where`: a row for each cluster, a column for each
/// expert, rows in the order of their largest entry's column, so that one expert to a cluster is a staircase.
/// Needs the arrays of "save": ["routing"], and "weights" for router rows; throws UserError
/// where they are missing.
HeatMap build_cluster_map(const Json& description, const FigureSource& source);

}  // namespace moelab
