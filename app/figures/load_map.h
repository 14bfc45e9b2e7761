#pragma once

/// From the arrays that a run saved to maps of the experts' load over training.

#include "app/figures/figure_kind.h"
#include "plots/heat_map.h"

namespace moelab {

/// One figure of plan["figures"] of kind "load_map": {id, title, where, arms, x_label, y_label}. A panel is
/// an arm's first seed that is done, at the last sweep point of `where`: a row for each expert, a column for
/// each of at most 40 recorded steps, the share of the test rows that the expert gets; absent where it is
/// dead. Needs the arrays of "save": ["routing_steps"]; throws UserError where they are missing.
HeatMap build_load_map(const Json& description, const FigureSource& source);

}  // namespace moelab
