#pragma once

/// Lines and points over x, in one panel or several with common axes. Nothing is computed here but the
/// layout.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/drawing.h"

namespace moelab {

/// One x of a series. An absent number leaves a gap, in the lines and as an empty CSV field.
struct FigurePoint {
  double x = 0;
  std::optional<double> mean = {};  ///< or whatever else stands for the seeds; the caption says what
  std::optional<double> low = {}, high = {};      ///< the band
  std::vector<std::optional<double>> seeds = {};  ///< thin lines, drawn below ten seeds
  bool censored = false;                          ///< an open marker: the value is a bound
};

/// How a series looks: a line with markers, band and thin lines of seeds; markers with bars, not joined; or a
/// grey dashed line without markers or band (a floor, a bound).
enum class SeriesLook { line, marks, reference };

struct FigureSeries {
  std::string name;                 ///< legend entry; series of equal name look alike in all panels
  std::vector<FigurePoint> points;  ///< in the order in which the line joins them
  SeriesLook look = SeriesLook::line;
};

struct FigurePanel {
  std::string name;  ///< above it, where there are several
  std::vector<FigureSeries> series;
};

struct Figure {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the plot; may be empty
  std::string caption;  ///< below the plot: what the lines and bands are
  std::string x_label, y_label;
  bool x_log = false, y_log = false;
  std::vector<std::string> x_categories;  ///< when not empty, x is an index into these names
  std::vector<FigurePanel> panels;
  std::optional<std::pair<double, double>> x_range, y_range;  ///< of the axes; fitted to the data without
};

/// The CSV has the columns series,x,mean,low,high,seed_0,…, led by `panel` where there are several, followed
/// by `censored` where a point is and by `x_label` for categories. One panel is 3.3 inches wide, several
/// stand on a page of 6.9. Values that a logarithmic axis cannot show (≤ 0) leave a gap; a band that reaches
/// there ends at the frame.
Drawing drawing_of(const Figure& figure);

/// The texts of it.
std::string figure_csv(const Figure& figure);
std::string figure_script(const Figure& figure);
std::string figure_html(const Figure& figure);

/// Whether a value lies within the range of an axis, where that has one.
bool is_within(double value, const std::optional<std::pair<double, double>>& range);

/// Whether a point is censored, so that the CSV has a column for it.
bool has_censored(const Figure& figure);
/// The most seeds of a point.
std::size_t seed_count(const Figure& figure);

}  // namespace moelab
