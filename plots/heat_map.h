#pragma once

/// Heat maps: a grid of numbers for each panel.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/figure.h"

namespace moelab {

/// values[y · columns + x]; an absent number is a grey cell.
struct HeatMapPanel {
  std::string name;
  std::vector<std::optional<double>> values;
  std::vector<std::optional<std::pair<double, double>>> intervals =
      {};                           ///< of the values; empty where there are none
  std::vector<bool> censored = {};  ///< whether a value is a lower bound; empty where none is
  // For the page alone:
  std::vector<std::vector<double>> frames = {};  ///< values at other times, which a slider goes through; NaN
                                                 ///< where there is none
  std::vector<std::string> frame_names = {};     ///< "step 100"
  std::vector<std::string> row_notes = {};       ///< what a row opens, from below
};

struct HeatMap {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the panels; may be empty
  std::string caption;  ///< below them: what the colours are
  std::string x_label, y_label;
  std::string value_label;                    ///< beside the colour scale
  std::vector<std::string> x_names, y_names;  ///< of columns from the left, of rows from below
  std::vector<HeatMapPanel> panels;           ///< one below the other, or of a compact map side by side
  bool compact = false;                       ///< small square cells without names and numbers
  double low = 0, high = 1;                   ///< the ends of the colour scale
};

/// The CSV is tidy: panel,x,y,value, and low,high where there are intervals, `censored` where a value is.
/// Where there is room the number of a cell stands in it, after ">" where it is censored, and below it, where
/// draws_intervals(), half of its interval if all are symmetric, and else both ends.
Drawing drawing_of(const HeatMap& map);

/// Whether the cells have the intervals in them, so that the caption can say what they are.
bool draws_intervals(const HeatMap& map);

/// The texts of it.
std::string heat_map_csv(const HeatMap& map);
std::string heat_map_script(const HeatMap& map);

// The cells of a heat map: their colours and what is written in them.

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
