#pragma once

/// The cells of a heat map: their colours and what is written in them.

#include <cstddef>
#include <string>

#include "plots/heat_map.h"

namespace moelab {

/// Whether the CSV has the columns low,high, and `censored`.
bool has_interval_columns(const HeatMap& map);
bool has_censored_column(const HeatMap& map);

/// There are intervals, and cells of this width hold every one of them as it is written.
bool has_room_for_intervals(const HeatMap& map, double cell_width);

/// How many significant digits tell apart numbers whose colours can be told apart: two to five.
int needed_digits(const HeatMap& map);

/// As many of those as the numbers have room for in cells of this width, two at least.
int cell_digits(const HeatMap& map, double cell_width);

/// The functions of gnuplot's language that heat_map_cells() calls, for numbers of so many digits.
std::string heat_map_functions(int digits);

/// The clause that colours the cells of a panel, and those of the numbers in them where there is room.
/// `first`: its first row in the CSV.
std::string heat_map_cells(const HeatMap& map, double cell_width, std::size_t first);

}  // namespace moelab
