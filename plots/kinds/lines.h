#pragma once

/// Builds line figures over a swept path or over training.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/rates.h"
#include "analysis/stats/result_table.h"
#include "plots/kinds/figure_kind.h"

namespace moelab {

/// The axes of lines over a swept path, which fix the panels of a figure.
struct LinePlaces {
  std::string x, series = "arm";
  SweepPoint where;
  std::vector<std::string> arms;  ///< empty: all
};

// Lines and panels

/// Figures that need more panels for unnamed swept paths are rejected.
inline constexpr std::size_t kMostFacets = 12;

/// The rows of one line in one panel: one arm, and one value of the series path if arms are not the series.
struct LineGroup {
  std::string arm;
  std::optional<SweepValue> value;
  SweepPoint facet;
  std::vector<const ResultRow*> rows;
};

/// The swept paths that x, the series and `where` do not fix. Of paths that vary together, only the first
/// counts. Empty if x is a metric, because a line then connects all points of the sweep. The path `searched`
/// is skipped, because its values differ between points.
std::vector<std::string> facet_paths(const LinePlaces& places, const ResultTable& table,
                                     const std::string& searched = "");

std::vector<LineGroup> line_groups(const LinePlaces& places, const ResultTable& table);

/// The panels' coordinates: values of the facet_paths(). One empty point if there are no such paths.
std::vector<SweepPoint> line_facets(const LinePlaces& places, const ResultTable& table);

/// The places on the x axis: numbers, or names if a swept value is not a number. For metrics, a place is the
/// mean over the seeds of a point, geometric for positive metrics.
class Horizontal {
 public:
  Horizontal(const std::string& text, const std::vector<LineGroup>& groups, const ResultTable& table,
             const DisplayNames& names);
  const std::vector<std::string>& categories() const { return categories_; }
  bool is_measured() const { return is_measured_; }
  /// Distinguishes points with the same x: the arm and point of the row for metrics, otherwise empty.
  std::string point_of(const ResultRow& row) const;
  /// (x, metrics) of a row: one pair for a swept path, and one per recorded step for training.
  std::vector<std::pair<double, const MetricValues*>> places(const ResultRow& row) const;

 private:
  /// Sets the x of each point to the mean over its seeds.
  void add_means(const std::vector<LineGroup>& groups);

  PlottedValue x_;
  bool is_measured_;
  std::map<std::string, double> means_;  ///< by point_of()
  std::vector<SweepValue> values_;
  std::vector<std::string> categories_;
};

// Names of lines

/// A line with the parts of its name. A part is empty if the figure does not need it.
struct NamedLine {
  std::string facet, arm, value, metric;
  FigureSeries series;       ///< without a name; a reference belongs to every panel of its facet and value
  std::string heading = {};  ///< panel title for the metric, instead of its short name

  bool is_reference() const { return series.look == SeriesLook::reference; }
};

/// The non-empty parts of a line's name: "20480, learned, top-1".
std::string full_name(const NamedLine& line);

/// Divides lines into panels, one per facet. A panel with more than six lines is split by metric, arm or
/// series value: the first of these that leaves at most six lines in each panel. If none does, each panel
/// gets up to six lines.
///
/// A panel's name contains the parts that the names of its lines lack. If no part splits the panel, its name
/// lists its lines.
std::vector<FigurePanel> line_panels(const std::vector<std::string>& facets,
                                     const std::vector<NamedLine>& lines);

// Points of a line

/// The number of right-censored values in a figure, and the number of all values.
struct CensoredCount {
  int censored = 0, all = 0;
};

/// The points of a line: the band_point of the group's finished cells at each x, or the median_point of a
/// value that may be censored. Empty if the value applies to no cell. Adds to `count`.
std::vector<FigurePoint> line_points(const LineGroup& group, const Horizontal& horizontal,
                                     const PlottedValue& value, bool is_sequential, CensoredCount& count);

/// A value in a figure, and whether one of its points has an interval.
struct ShownValue {
  PlottedValue value;
  bool has_interval = false;
};

/// Describes the statistic in a caption: "5 seeds: geometric mean, 95 % interval of logarithms; thin lines:
/// single seeds." Without intervals: "3 seeds: median, too few seeds for an interval".
std::string statistic_text(const std::vector<ShownValue>& values, std::size_t seeds, bool is_sequential,
                           bool has_thin_lines);

/// Caption text " Open markers: …"; empty if no value is censored.
std::string censored_text(const CensoredCount& count);

// Captions, titles and axis labels

/// The common y label of several metrics: the words at the start of all labels, at least two. Without such
/// words the label is "value".
std::string common_label(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// Whether the metrics share such words.
bool have_common_label(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// The metrics in a title: their common words, two names, or their number.
std::string listed_metrics(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// The caption: the scenario, the seeds with their statistic, and the omitted cells.
std::string lines_caption(const std::string& title, const FigureSource& source,
                          const std::vector<LineGroup>& groups, const std::vector<ShownValue>& values,
                          const std::vector<FigurePanel>& panels);

/// Caption text " Not above 0, left out on the logarithmic axis: …" with the lines that have such means;
/// empty if there are none.
std::string not_above_zero_text(const std::vector<NamedLine>& lines);

/// Caption text about axis ranges: the given ranges, and the lines outside the y range. It also says if no
/// line lies inside. Empty without ranges.
std::string ranges_text(const std::vector<NamedLine>& lines, const Figure& figure);

// Rates of convergence

/// One line of a rate panel: a metric of one arm at one value of the series path.
struct RateEntry {
  std::string arm;
  std::string name;  ///< name of the line, without the arm
  RateQuery query;
  RateData data;  ///< all n, including those outside the window
  RateEstimate estimate;
};

/// A panel is an arm. Points are geometric means over repetitions with the 95 % interval of the mean
/// logarithm. Lines are power laws with the mean slope and intercept over the window.
struct RateOptions : FigureCommon, AxisLabels {
  std::string x, series = "arm";
  std::vector<std::string> y, rows, columns;
  std::vector<double> window;  ///< [least n, most n] of the slopes; empty: all
  RateAverage average = RateAverage::logarithms;
  NamedValues<std::string> reported;  ///< arm → the rate that the source gives
  void bind(Fields& fields);
  std::vector<std::string> metrics() const { return y; }
};

/// The entries of one figure, sorted by arm. Metrics that no cell has are omitted.
std::vector<RateEntry> rate_entries(const RateOptions& options, const ResultTable& table);

}  // namespace moelab
