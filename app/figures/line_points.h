#pragma once

/// The points of a line: what its seeds say at each x.

#include <string>
#include <vector>

#include "app/figures/line_groups.h"
#include "app/figures/plotted_value.h"
#include "plots/figure.h"

namespace moelab {

/// How many values of a figure are right-censored, and of how many.
struct CensoredCount {
  int censored = 0, all = 0;
};

/// band_point of the group's cells that are done at each x, or median_point of a value that may be censored;
/// no points where the value applies to none of them. Adds to `count`.
std::vector<FigurePoint> line_points(const LineGroup& group, const Horizontal& horizontal,
                                     const PlottedValue& value, bool is_sequential, CensoredCount& count);

/// A value of a figure, and whether some point of it has an interval.
struct ShownValue {
  PlottedValue value;
  bool has_interval = false;
};

/// "5 seeds: geometric mean, 95 % interval of logarithms; thin lines: single seeds." of lines of these
/// values; "3 seeds: median, too few seeds for an interval" where no point has one.
std::string statistic_text(const std::vector<ShownValue>& values, std::size_t seeds, bool is_sequential);

/// " Open markers: …", or nothing where no value is censored.
std::string censored_text(const CensoredCount& count);

}  // namespace moelab
