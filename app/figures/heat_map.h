#pragma once

/// Builds heat maps from the results and saved arrays of a run.

#include "app/figures/figure_kind.h"
#include "plots/heat_map.h"

namespace moelab {

/// Builds a figure of kind "heat_map": {id, x, y, value, at_least, title, x_label, y_label, value_label,
/// where, arms}.
///
/// A panel shows an arm at one value of each swept path that x, y and `where` leave open. A map cell is the
/// seed_estimate of the metric `value` over the finished seeds. With `at_least`, it is the share of seeds at
/// or above that value. Both have a 95 % interval. Columns and rows keep the order of the sweep.
HeatMap build_heat_map(const Json& description, const FigureSource& source);

// Load maps

/// Builds a figure of kind "load_map": {id, title, where, arms, x_label, y_label}.
///
/// A panel shows the first finished seed of an arm at the last sweep point of `where`. Rows are experts, and
/// columns are at most 40 recorded steps. A map cell is the expert's share of the test rows; it is absent if
/// the expert is dead. Needs "save": ["routing_steps"]. Throws UserError if arrays are missing.
HeatMap build_load_map(const Json& description, const FigureSource& source);

// Cluster maps

/// Builds a figure of kind "cluster_map": {id, value, title, where, arms}.
///
/// A panel shows the first finished seed of an arm at the last sweep point of `where`. Rows are clusters and
/// columns are experts. Rows are sorted by the column of their largest entry, so one expert per cluster forms
/// a staircase. Needs "save": ["routing"], and "weights" for router rows. Throws UserError if arrays are
/// missing.
HeatMap build_cluster_map(const Json& description, const FigureSource& source);

}  // namespace moelab
