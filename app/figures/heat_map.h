#pragma once

/// From a run's results to the heat maps that its plan asks for.

#include "app/figures/figure_kind.h"
#include "plots/heat_map.h"

namespace moelab {

/// One figure of plan["figures"] of kind "heat_map": {id, x, y, value, at_least, title, x_label, y_label,
/// value_label, where, arms}. A panel is an arm at one value of each swept path that x, y and `where` leave
/// open; a cell the seed_estimate of the metric `value` over the seeds that are done, or the share of them
/// with at least `at_least`, each with its 95 % interval. Columns and rows stand in the order of the sweep.
HeatMap build_heat_map(const Json& description, const FigureSource& source);

// From the arrays that a run saved to maps of the experts' load over training.

/// One figure of plan["figures"] of kind "load_map": {id, title, where, arms, x_label, y_label}. A panel is
/// an arm's first seed that is done, at the last sweep point of `where`: a row for each expert, a column for
/// each of at most 40 recorded steps, the share of the test rows that the expert gets; absent where it is
/// dead. Needs the arrays of "save": ["routing_steps"]; throws UserError where they are missing.
HeatMap build_load_map(const Json& description, const FigureSource& source);

// From the arrays that a run saved to maps of clusters against experts.

/// One figure of plan["figures"] of kind "cluster_map": {id, value, title, where, arms}. A panel is an arm's
/// first seed that is done, at the last sweep point of `where`: a row for each cluster, a column for each
/// expert, rows in the order of their largest entry's column, so that one expert to a cluster is a staircase.
/// Needs the arrays of "save": ["routing"], and "weights" for router rows; throws UserError
/// where they are missing.
HeatMap build_cluster_map(const Json& description, const FigureSource& source);

}  // namespace moelab
