#pragma once

/// Searched crossings drawn over another swept path: a phase boundary.

#include "app/figures/figure_kind.h"
#include "plots/figure.h"

namespace moelab {

/// One figure of plan["figures"] of kind "crossing": {id, x, y, x_scale, y_scale, x_label, y_label, title,
/// where, arms, series, power_law, laws}. A line is an arm's crossings, at one value of the series if that is
/// a path, each with its 95 % interval, which ends at the range where it is open. Swept paths that x, the
/// series and `where` do not settle make panels. A search that found none leaves a gap, which the caption
/// tells.
Figure build_crossing_figure(const Json& description, const FigureSource& source);

}  // namespace moelab
