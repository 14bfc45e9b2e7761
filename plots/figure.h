#pragma once

/// Lines and points over x, in one panel or several with common axes.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/layout.h"

namespace moelab {

/// One x of a series. An absent number is a gap in the line and an empty field in the CSV.
struct FigurePoint {
  double x = 0;
  std::optional<double> mean = {};            ///< or another statistic over the seeds; the caption names it
  std::optional<double> low = {}, high = {};  ///< the band
  std::vector<std::optional<double>> seeds = {};  ///< thin lines, painted below ten seeds
  bool censored = false;                          ///< the value is a bound: an open marker
};

/// A line with markers, band and thin lines of seeds. Markers with error bars. Or a grey dashed line without
/// markers and band (a floor, a bound).
enum class SeriesLook { line, marks, reference };

struct FigureSeries {
  std::string name;                 ///< legend entry; series of equal name look alike in all panels
  std::vector<FigurePoint> points;  ///< in the order in which the line joins them
  SeriesLook look = SeriesLook::line;
};

struct FigurePanel {
  std::string name;  ///< above the panel, if there are several
  std::vector<FigureSeries> series;
};

struct Figure {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the plot; may be empty
  std::string caption;  ///< below the plot: what the lines and bands are
  std::string x_label, y_label;
  bool x_log = false, y_log = false;
  std::vector<std::string> x_categories;  ///< if not empty, x is an index into these names
  std::vector<FigurePanel> panels;
  std::optional<std::pair<double, double>> x_range, y_range;  ///< of the axes; absent: fitted to the data
  /// What y can be: [0, 1] of a share. An interval may reach farther, the axis does not.
  std::optional<std::pair<double, double>> y_bounds = {};
  FigureStyle style = {};
};

/// The ends of the y axis where bands or a few means reach so far that the other lines would be flat: then
/// the axis shows the others. Adds to the caption what leaves the axis. Does nothing to a figure with a y
/// range.
void leave_out_outliers(Figure& figure);

/// Thin lines of single seeds are legible below this count.
inline constexpr std::size_t kSeedLinesBelow = 10;

/// Whether a value lies in the range of an axis. Without a range every value does.
bool is_within(double value, const std::optional<std::pair<double, double>>& range);

std::size_t seeds_of(const FigureSeries& series);  ///< the most seeds of a point
bool has_seed_lines(const FigureSeries& series);
/// A marker stands at every so many points of a line. Marks that no line joins have one at every point.
std::size_t marker_step(const FigureSeries& series);

/// Columns series,x,mean,low,high,seed_0,…, preceded by `panel` with several panels, followed by `censored`
/// where a point is censored, and by `x_label` for categories.
std::string figure_csv(const Figure& figure);

/// Without a style, one panel is 3.3 inches wide, and several share a page of 6.9 inches. A logarithmic axis
/// leaves a gap for values ≤ 0, and a band that reaches them ends at the frame.
struct FigureLayout : PageLayout {
  /// Which texts the page has besides the panels: the report's page sets title, caption and legend itself.
  enum class Texts { all, axes };

  std::size_t columns = 1, rows = 1;
  std::vector<SeriesStyle> looks;                     ///< by name, in the order that all panels agree with
  std::vector<std::vector<std::string>> panel_names;  ///< in lines, if there are several panels
  double panel_width = 0, step = 0;                   ///< of a panel; from one row of panels to the next

  /// `scales`: takes the axes of another layout.
  explicit FigureLayout(const Figure& figure, Texts texts = Texts::all, const PageLayout* scales = nullptr);
  const SeriesStyle& look_of(const std::string& name) const;

 private:
  const PageLayout* scales_ = nullptr;
  /// Places everything with panels of this height. False if the legend has no room at its place.
  bool arrange(const Figure& figure, Texts texts, LegendPlace legend_place, double panel_height);
};

/// The figure as data: {"kind": "lines", "id", "title", "caption", "x_label", "y_label", "x_log", "y_log",
/// "x_range", "y_range", "x_categories", "panels": [{"name", "series"}], "styles": {name: style}, "layout"}.
nlohmann::ordered_json data_json(const Figure& figure);

/// The same for the report's page, where each panel has its own layout.
nlohmann::ordered_json page_json(const Figure& figure);

/// The figure with about `most` numbers; the same figure if it has no more. Each of equally wide stretches of
/// the x axis keeps the first, last, lowest and highest point of a line. The caption says what was left out,
/// and that `figures/<id>.csv` has it.
Figure thinned(const Figure& figure, std::size_t most);

}  // namespace moelab
