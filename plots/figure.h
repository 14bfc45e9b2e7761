#pragma once

/// Figures: data in, CSV + gnuplot script + SVG + PDF + PNG out. Nothing is computed here but the layout.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace moelab {

/// One x of a series. An absent number leaves a gap, in the lines and as an empty CSV field.
struct FigurePoint {
  double x = 0;
  std::optional<double> mean;
  std::optional<double> low, high;           ///< the band
  std::vector<std::optional<double>> seeds;  ///< thin lines, drawn below ten seeds
};

struct FigureSeries {
  std::string name;                 ///< legend entry
  std::vector<FigurePoint> points;  ///< in the order in which the line joins them
  bool reference = false;           ///< a dashed grey line without markers or band (a floor, a bound)
};

struct Figure {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the plot; may be empty
  std::string caption;  ///< below the plot: what the lines and bands are
  std::string x_label, y_label;
  bool x_log = false, y_log = false;
  std::vector<std::string> x_categories;  ///< when not empty, x is an index into these names
  std::vector<FigureSeries> series;
};

/// Writes <id>.csv (tidy: series,x,mean,low,high,seed_0,…, and x_label for categories; shortest exact
/// decimals), <id>.gp, and by running `gnuplot <id>.gp` in `directory` also <id>.svg, <id>.pdf and
/// <id>.png, 3.3 inches wide. The script names its files relatively and needs only the CSV beside it. CSV,
/// script and SVG are equal to the byte for equal figures. Returns the five paths. Values that a logarithmic
/// axis cannot show (≤ 0) leave a gap. Throws EnvironmentError when a file cannot be written, or gnuplot is
/// missing or fails (with its message).
std::vector<std::filesystem::path> render(const Figure& figure, const std::filesystem::path& directory);

/// The two texts that render() writes.
std::string figure_csv(const Figure& figure);
std::string figure_script(const Figure& figure);

}  // namespace moelab
