#pragma once

/// Heat maps: a grid of numbers for each panel, in and CSV + gnuplot script + SVG + PDF + PNG out.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace moelab {

/// values[y · columns + x]; an absent number is a grey cell.
struct HeatMapPanel {
  std::string name;
  std::vector<std::optional<double>> values;
};

struct HeatMap {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the panels; may be empty
  std::string caption;  ///< below them: what the colours are
  std::string x_label, y_label;
  std::vector<std::string> x_names, y_names;  ///< of columns from the left, of rows from below
  std::vector<HeatMapPanel> panels;           ///< one below the other, or of a compact map side by side
  bool compact = false;                       ///< small square cells without names and numbers
  double low = 0, high = 1;                   ///< the ends of the colour scale
};

/// Writes and draws as render(Figure) does. The CSV is tidy: panel,x,y,value. The number of a cell stands in
/// it where there is room. Throws EnvironmentError.
std::vector<std::filesystem::path> render(const HeatMap& map, const std::filesystem::path& directory);

/// The two texts that render() writes.
std::string heat_map_csv(const HeatMap& map);
std::string heat_map_script(const HeatMap& map);

}  // namespace moelab
