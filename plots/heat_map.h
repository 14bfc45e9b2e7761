#pragma once

/// Heat maps: a grid of numbers for each panel.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/layout.h"

namespace moelab {

/// values[y · columns + x]. An absent number is a grey cell.
struct HeatMapPanel {
  std::string name;
  std::vector<std::optional<double>> values;
  std::vector<std::optional<std::pair<double, double>>> intervals = {};  ///< of the values; empty: none
  std::vector<bool> censored = {};  ///< whether a value is a lower bound; empty: none is
  // For the report's page alone:
  std::vector<std::vector<double>> frames = {};  ///< values at other times, for a slider; NaN: absent
  std::vector<std::string> frame_names = {};     ///< "step 100"
  std::vector<std::string> row_notes = {};       ///< what a click on a row shows, from the lowest row
};

struct HeatMap {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the panels; may be empty
  std::string caption;  ///< below the panels: what the colours are
  std::string x_label, y_label;
  std::string value_label;                    ///< beside the colour scale
  std::vector<std::string> x_names, y_names;  ///< of columns from the left, of rows from below
  std::vector<HeatMapPanel> panels;           ///< below each other; side by side in a compact map
  bool compact = false;                       ///< small square cells without names and numbers
  double low = 0, high = 1;                   ///< the ends of the colour scale
  FigureStyle style = {};
};

/// Whether the CSV has the columns low,high, and `censored`.
bool has_intervals(const HeatMap& map);
bool has_censored_cells(const HeatMap& map);

/// Columns panel,x,y,value, then low,high where there are intervals, and `censored` where a value is
/// censored.
std::string heat_map_csv(const HeatMap& map);

/// What a cell says: its number, after ">" if it is censored, and below it half of its interval if all
/// intervals are symmetric, else both ends.
struct CellText {
  std::string number, interval;
  bool is_bright = false;  ///< the text is black, not white
};

struct HeatMapLayout : PageLayout {
  /// Which texts the page has besides the panels. The report's page sets title and caption itself, and its
  /// compact cells have numbers, too, if there is room.
  enum class Texts { all, axes };

  double cell_width = 0, cell_height = 0;
  int digits = 2;                            ///< significant digits of the numbers
  bool has_numbers = false;                  ///< cells are wide enough for their numbers
  bool has_intervals = false;                ///< and for their intervals
  bool is_symmetric = false;                 ///< half of the interval says all of it
  double bright_from = 0, bright_to = 0;     ///< cells between these values have black texts
  std::vector<std::vector<CellText>> cells;  ///< by panel; empty without numbers

  std::vector<const char*> palette;  ///< equidistant colours from `low` to `high`, "#440154"
  double low = 0, high = 1;          ///< the ends of the colour scale; never equal
  std::vector<std::pair<double, std::string>> scale_ticks;
  double scale_left = 0, scale_bottom = 0, scale_height = 0;  ///< of the colour scale beside all panels

  explicit HeatMapLayout(const HeatMap& map, Texts texts = Texts::all);

 private:
  FittedNames labels_, row_names_, panel_names_;
  std::size_t columns_ = 1;  ///< of panels
  double left_ = 0, right_ = 0, panel_width_ = 0, panel_height_ = 0, row_height_ = 0;

  /// Places everything. `extra`: what the height of all panels together has in addition.
  void arrange(const HeatMap& map, Texts texts, double extra);
  /// `room`: the length of the rotated labels.
  void place_panels(const HeatMap& map, double room, double extra);
  void write_cells(const HeatMap& map, bool allows_numbers);
};
/// The width of a colour scale.
constexpr double kScaleWidth = 6;
/// Font sizes of the numbers and intervals in cells, and their heights above the middle, in cells.
constexpr double kNumberSize = kSmallFontSize, kIntervalSize = 5, kNumberRise = 0.18, kIntervalRise = -0.27;

/// The number of a cell with so many significant digits, also where they are zeros: 2.0 next to 2.1. From
/// there on it is whole: 123 needs less room than 1.2e+02, and says more.
std::string cell_number(double value, int digits);
/// Half of an interval: one digit, and whole from 9.5 on.
std::string half_number(double half);

/// The figure as data: {"kind": "heat_map", "id", "title", "caption", "x_label", "y_label", "value_label",
/// "x_names", "y_names", "compact", "low", "high", "panels": [{"name", "values", "intervals", "censored"}],
/// "layout", with "cells": [[{"number", "interval", "bright"}]] and "scale"}.
nlohmann::ordered_json data_json(const HeatMap& map);

/// The same for the report's page, where each panel has its own layout, frames and notes.
nlohmann::ordered_json page_json(const HeatMap& map);

}  // namespace moelab
