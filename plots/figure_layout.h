#pragma once

/// Where the parts of a figure's page stand.

#include <array>
#include <string>
#include <vector>

#include "plots/axis.h"
#include "plots/figure.h"
#include "plots/legend.h"
#include "plots/page.h"

namespace moelab {

/// Lengths in points (1/72 inch) from the left and bottom edges: caption, legend, label of x, panels, title.
struct FigureLayout {
  double width, left_margin = 0, panel_width = 0, panel_height = 0, step = 0;
  double legend_bottom = 0, x_label_middle = 0, bottom = 0, height = 0;
  std::size_t columns = 1, rows = 1;
  Axis y, x;
  Heading heading;
  std::vector<LegendEntry> looks;  ///< of the series by name, in the order in which they are first seen
  Legend legend;
  std::vector<std::string> x_label, y_label;

  explicit FigureLayout(const Figure& figure);
  double left(std::size_t panel) const;
  double low(std::size_t panel) const;
  double panel_name = 0;                              ///< the height of the panels' names
  std::vector<std::vector<std::string>> panel_names;  ///< in lines, where there are several panels
  /// Of panels side by side or one below the other.
  static constexpr double kBetween = 9, kRightMargin = 12;
  const LegendEntry& look_of(const std::string& name) const;
};

/// Thin lines of single seeds are legible below ten seeds (the contract's rule).
bool has_seed_lines(const FigureSeries& series);
std::size_t seeds_of(const FigureSeries& series);

}  // namespace moelab
