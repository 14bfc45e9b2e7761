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

}  // namespace moelab
