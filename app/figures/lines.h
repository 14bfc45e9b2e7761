#pragma once

/// From a run's results to lines over a swept path or over training.

#include "app/figures/figure_kind.h"
#include "plots/figure.h"

namespace moelab {

/// One figure of plan["figures"] of kind "lines": {id, x, y, series, x_scale, y_scale, x_range, y_range,
/// title, x_label, y_label, where, arms}. A line is an arm (or a value of the swept path `series`) times a
/// metric of `y`: band_point of the cells that are done, or median_point of steps that may be censored. Swept
/// paths that are neither x nor series nor in `where` make panels, and so do more than six lines. A metric
/// that does not apply to an arm gives no line; bayes_nmse beside other metrics, equal for all arms, is one
/// dashed reference line, or, where it lies far below a logarithmic axis, a sentence in the caption. The
/// caption names seeds, interval, what was left out and what was censored.
Figure build_figure(const Json& description, const FigureSource& source);

}  // namespace moelab
