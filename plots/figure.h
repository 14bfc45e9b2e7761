#pragma once

/// Lines and points over x, in one panel or several with common axes. Nothing is computed here but the
/// layout.

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/page.h"

namespace moelab {

// A figure ready to be drawn, whatever its kind: as files by gnuplot, and in the report's page.

struct Drawing {
  std::string id;         ///< file name without ending
  std::string title;      ///< may be empty
  std::string caption;    ///< what is shown, with its seeds and intervals
  std::string csv;        ///< the data, tidy: shortest exact decimals, a gap is an empty field
  std::string script;     ///< of gnuplot; names its files relatively and needs only <id>.csv beside it
  std::string html;       ///< what the page shows, see page_data(); empty: the SVG as it was drawn
  std::string note = {};  ///< ends the caption on the page, which then does not hold the CSV: too large
};

/// Writes <id>.csv and <id>.gp into `directory` and by running `gnuplot <id>.gp` there also <id>.svg,
/// <id>.pdf and <id>.png; the five paths. CSV, script and SVG are equal to the byte for equal drawings.
/// Throws EnvironmentError when a file cannot be written, or gnuplot is missing or fails (with its message).
std::vector<std::filesystem::path> render(const Drawing& drawing, const std::filesystem::path& directory);

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

// Colours, markers and dashes of the series of a figure.

/// Okabe and Ito's palette, told apart by every common kind of colour vision; its yellow is too faint on
/// white.
inline constexpr std::array<const char*, 7> kColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                        "E69F00", "56B4E9", "000000"};
/// Of points and areas, above which black is drawn: violet in its place, as on the page of the report.
inline constexpr std::array<const char*, 7> kAreaColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                            "E69F00", "56B4E9", "8C6BB1"};
/// gnuplot's circle, square, triangles, diamond, pentagon, filled then open.
inline constexpr std::array<int, 12> kMarkers = {7, 5, 9, 13, 11, 15, 6, 4, 8, 12, 10, 14};
inline constexpr std::array<const char*, 6> kDashes = {"1",          "(12,4)", "(4,3)",
                                                       "(12,3,3,3)", "(20,4)", "(2,2)"};
/// Thin lines of single seeds are legible below this count (the contract's rule).
inline constexpr std::size_t kSeedLinesBelow = 10;
/// Of markers on lines, gnuplot's `ps`: told apart at the width of a printed column.
inline constexpr double kMarkerSize = 0.58;
inline constexpr const char* kReferenceColour = "555555";

struct Style {
  const char* colour;
  int marker;
  const char* dash;
};

constexpr Style style_of(std::size_t index) {
  return {kColours[index % kColours.size()], kMarkers[index % kMarkers.size()],
          kDashes[index % kDashes.size()]};
}

// Ranges and tick marks of one axis.

struct Axis {
  bool logarithmic = false;
  double low = 0, high = 1;
  std::vector<std::pair<double, std::string>> ticks;  ///< place and label; empty for a minor tick
  bool upright = false;                               ///< labels stand, since they are longer than their room
};

/// The label of a tick: "0.05", "2560"; on a logarithmic axis far powers of ten are "10⁻⁵".
std::string tick_label(double value, bool logarithmic);

/// An axis that shows all `values` (those above 0 on a logarithmic one) with a small margin.
Axis fit_axis(const std::vector<double>& values, bool logarithmic);

/// An axis with ticks at the given places, which are the values of a sweep; that of fit_axis where one of
/// them is a long number, such as one that was searched.
Axis fit_axis_at(std::vector<double> places, bool logarithmic);

/// An axis from `low` to `high` > `low`, with ticks at round steps between them.
Axis axis_between(double low, double high);

/// Leaves out labels that would run into another on an axis of `width` points: the last one stays, and of
/// ticks that are evenly apart every so many from there, of others the first, too.
void keep_labels_apart(Axis& axis, double width);

/// Leaves out labels, all but every so many, where those that stand have less than a line each. `room`: from
/// one tick to the next, in points.
void thin_upright_labels(Axis& axis, double room);

/// The gnuplot lines that set the axis `name` ('x' or 'y'): scale, range and ticks, with or without labels.
std::string axis_script(char name, const Axis& axis, bool with_labels = true);

// What lines and markers stand for, set by moelab itself: gnuplot's own key has another size on each
// terminal.

struct LegendEntry {
  std::string name;
  std::string colour;  ///< six hexadecimal digits
  std::string dash;    ///< of gnuplot, "1" or "(8,4)"; empty for no line
  int marker = 0;      ///< of gnuplot; 0 for none
};

/// Entries in columns of equal width, row by row; a name that is longer than the page is wide has several
/// lines.
class Legend {
 public:
  Legend(std::vector<LegendEntry> entries, double page_width);
  double height() const { return height_; }
  /// The gnuplot lines that draw it in the middle of the page with its lower edge at `bottom`.
  std::string script(double bottom, double page_height) const;

 private:
  std::vector<LegendEntry> entries_;
  std::vector<std::vector<std::string>> names_;  ///< in lines
  double page_width_ = 0, entry_width_ = 0, height_ = 0;
  std::size_t columns_ = 1;
  std::vector<std::size_t> row_lines_;
};

// Where the parts of a figure's page stand.

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

// Figures of very many points, for a page that has to stay small.

/// The figure with `most` numbers or about as many; the same where it has no more. Each of equally wide
/// stretches of the x axis keeps a line's first, last, lowest and highest point, so that lines keep their
/// shape; seeds stay where they are drawn (below ten). The caption says what was left out, and that
/// figures/<id>.csv has it.
Figure thinned(const Figure& figure, std::size_t most);

}  // namespace moelab
