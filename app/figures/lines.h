#pragma once

/// From a run's results to lines over a swept path or over training.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/rates.h"
#include "analysis/stats/result_table.h"
#include "app/figures/figure_kind.h"
#include "app/scenario/json.h"
#include "plots/figure.h"
#include "plots/rate_panels.h"

namespace moelab {

/// One figure of plan["figures"] of kind "lines": {id, x, y, series, x_scale, y_scale, x_range, y_range,
/// title, x_label, y_label, where, arms}. A line is an arm (or a value of the swept path `series`) times a
/// metric of `y`: band_point of the cells that are done, or median_point of steps that may be censored. Swept
/// paths that are neither x nor series nor in `where` make panels, and so do more than six lines. A metric
/// that does not apply to an arm gives no line; bayes_nmse beside other metrics, equal for all arms, is one
/// dashed reference line, or, where it lies far below a logarithmic axis, a sentence in the caption. The
/// caption names seeds, interval, what was left out and what was censored.
Figure build_figure(const Json& description, const FigureSource& source);

// Which cells a line shows, and in which panel it stands.

/// More panels for swept paths that a figure does not name are refused.
inline constexpr std::size_t kMostFacets = 12;

/// The rows of one arm at one value of the series path (none where arms are the series) in one panel.
struct LineGroup {
  std::string arm;
  std::optional<SweepValue> value;
  SweepPoint facet;
  std::vector<const ResultRow*> rows;
};

/// The swept paths that x, the series and `where` do not settle, of those that vary together the first: none
/// where x is a metric, along which a line goes through all points of the sweep. `searched`, whose values are
/// each point's own, is not looked at.
std::vector<std::string> facet_paths(const Json& figure, const ResultTable& table,
                                     const std::string& searched = "");

/// Of a figure with `x`, `series`, `where` and `arms`.
std::vector<LineGroup> line_groups(const Json& figure, const ResultTable& table);

/// The coordinates of the panels: values of the swept paths that x, series and `where` do not settle, of
/// those that vary together the first. One without coordinates where there are none.
std::vector<SweepPoint> line_facets(const Json& figure, const ResultTable& table);

/// The places of the x axis: numbers, or names when a swept value is not a number. Of metrics their means
/// over the seeds of a point, geometric if positive.
class Horizontal {
 public:
  Horizontal(const std::string& text, const std::vector<LineGroup>& groups, const ResultTable& table,
             const DisplayNames& names);
  const std::vector<std::string>& categories() const { return categories_; }
  bool is_measured() const { return is_measured_; }
  /// What tells points apart that stand at the same x: of metrics the row's arm and point, else nothing.
  std::string point_of(const ResultRow& row) const;
  /// (x, metrics) of a row: one pair for swept paths, one for every recorded step.
  std::vector<std::pair<double, const MetricValues*>> places(const ResultRow& row) const;

 private:
  /// Places the seeds of each point at the mean of their values.
  void add_means(const std::vector<LineGroup>& groups);

  PlottedValue x_;
  bool is_measured_;
  std::map<std::string, double> means_;  ///< by point_of
  std::vector<SweepValue> values_;
  std::vector<std::string> categories_;
};

// In which panel a line stands, and what it is called there.

/// A line by the parts of its name; those that tell nothing are empty.
struct NamedLine {
  std::string facet, arm, value, metric;
  FigureSeries series;       ///< without a name; a reference belongs to every panel of its facet and value
  std::string heading = {};  ///< of a panel of the metric, in place of its short name

  bool is_reference() const { return series.look == SeriesLook::reference; }
};

/// "20480, learned, top-1": the parts that tell something.
std::string full_name(const NamedLine& line);

/// A panel for each facet. Where one would have more than six lines, there is one for each metric, or arm, or
/// value of the series, the first of these that leaves at most six lines in each; or else one for six lines
/// each. A panel's name says what those of its lines do not, or of six lines each names them.
std::vector<FigurePanel> line_panels(const std::vector<std::string>& facets,
                                     const std::vector<NamedLine>& lines);

// The points of a line: what its seeds say at each x.

/// How many values of a figure are right-censored, and of how many.
struct CensoredCount {
  int censored = 0, all = 0;
};

/// band_point of the group's cells that are done at each x, or median_point of a value that may be censored;
/// no points where the value applies to none of them. Adds to `count`.
std::vector<FigurePoint> line_points(const LineGroup& group, const Horizontal& horizontal,
                                     const PlottedValue& value, bool is_sequential, CensoredCount& count);

/// A value of a figure, and whether some point of it has an interval.
struct ShownValue {
  PlottedValue value;
  bool has_interval = false;
};

/// "5 seeds: geometric mean, 95 % interval of logarithms; thin lines: single seeds." of lines of these
/// values; "3 seeds: median, too few seeds for an interval" where no point has one.
std::string statistic_text(const std::vector<ShownValue>& values, std::size_t seeds, bool is_sequential);

/// " Open markers: …", or nothing where no value is censored.
std::string censored_text(const CensoredCount& count);

// What the caption, the title and the axis of y of a figure of lines say.

/// What several metrics share at the axis: how all of their labels begin, by two words at least, or else that
/// they are values.
std::string common_label(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// Whether they share that.
bool have_common_label(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// What a title calls the metrics: what they share, or two by name, or how many there are.
std::string listed_metrics(const std::vector<PlottedValue>& values, const DisplayNames& names);

/// The scenario, the seeds with their statistic, and the cells that were left out.
std::string lines_caption(const std::string& title, const FigureSource& source,
                          const std::vector<LineGroup>& groups, const std::vector<ShownValue>& values);

/// " Not above 0, left out on the logarithmic axis: …", the lines with such a mean, or nothing without any.
std::string not_above_zero_text(const std::vector<NamedLine>& lines);

/// The ranges that the figure's axes were given, and the lines that lie outside of that of y, or that nothing
/// lies within; nothing without ranges.
std::string ranges_text(const std::vector<NamedLine>& lines, const Figure& figure);

// From a run's results to rates of convergence.

/// One line of a panel: a metric of one arm at one value of the series path.
struct RateEntry {
  std::string arm;
  std::string name;  ///< of the line, without the arm
  RateQuery query;
  RateData data;  ///< at all n, those outside the window too
  RateEstimate estimate;
};

/// The entries of one figure, arm by arm; metrics that no cell has are left out.
std::vector<RateEntry> rate_entries(const Json& description, const ResultTable& table);

/// {id, kind: "rate_panels", x, y, series, where, window, arms, rows, columns, reported, title, x_label,
/// y_label}. A panel is an arm; points are geometric means over repetitions with the 95 % interval of the
/// mean logarithm, lines the power law of the mean slope and intercept over the window.
RatePanels build_rate_panels(const Json& description, const FigureSource& source);

}  // namespace moelab
