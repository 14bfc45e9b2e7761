#pragma once

/// What the caption, the title and the axis of y of a figure of lines say.

#include <string>
#include <vector>

#include "app/figures/display_names.h"
#include "app/figures/figure_kind.h"
#include "app/figures/line_groups.h"
#include "app/figures/line_panels.h"
#include "app/figures/line_points.h"
#include "app/figures/plotted_value.h"
#include "plots/figure.h"

namespace moelab {

/// What several metrics share at the axis: how all of their labels begin, by two words at least, or else that
/// they are values.
std::string common_label(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// Whether they share that.
bool have_common_label(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// What a title calls the metrics: what they share, or two by name, or how many there are.
std::string listed_metrics(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// The scenario, the seeds with their statistic, and the cells that were left out.
std::string lines_caption(const std::string& title, const FigureSource& source,
                          const std::vector<LineGroup>& groups, const std::vector<ShownValue>& values);

/// " Not above 0, left out on the logarithmic axis: …", the lines with such a mean, or nothing without any.
std::string not_above_zero_text(const std::vector<NamedLine>& lines);

/// The ranges that the figure's axes were given, and the lines that lie outside of that of y, or that nothing
/// lies within; nothing without ranges.
std::string ranges_text(const std::vector<NamedLine>& lines, const Figure& figure);

}  // namespace moelab
