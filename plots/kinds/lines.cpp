#include "plots/kinds/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "plots/kinds/figure_kind.h"
#include "plots/texts.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The y label of metrics that share no words.
constexpr const char* kNoLabel = "value";

std::string range_text(const std::string& label, const std::pair<double, double>& range) {
  return fmt::format(" Shown: {} from {:g} to {:g}.", label, range.first, range.second);
}

/// The least and the largest x of the points within the x range; the range itself if it contains none.
std::pair<double, double> drawn_range(const std::vector<NamedLine>& lines,
                                      const std::pair<double, double>& range) {
  std::optional<std::pair<double, double>> drawn;
  for (const NamedLine& line : lines)
    for (const FigurePoint& point : line.series.points) {
      if (!point.mean || !is_within(point.x, range)) continue;
      if (!drawn) drawn = std::pair(point.x, point.x);
      drawn = std::pair(std::min(drawn->first, point.x), std::max(drawn->second, point.x));
    }
  return drawn.value_or(range);
}

/// Whether a point lies inside both axis ranges.
bool is_shown(const FigurePoint& point, const Figure& figure) {
  return point.mean && is_within(point.x, figure.x_range) && is_within(*point.mean, figure.y_range);
}

/// Caption text " Wholly outside: …" with the lines that have no mean inside the y range; empty if there are
/// none.
std::string outside_text(const std::vector<NamedLine>& lines, const Figure& figure) {
  std::vector<std::string> names;
  for (const NamedLine& line : lines) {
    bool has_mean = false, is_seen = false;
    for (const FigurePoint& point : line.series.points) {
      has_mean = has_mean || (point.mean && is_within(point.x, figure.x_range));
      is_seen = is_seen || is_shown(point, figure);
    }
    if (has_mean && !is_seen) names.push_back(full_name(line));
  }
  return names.empty() ? "" : fmt::format(" Wholly outside: {}.", fmt::join(names, "; "));
}

/// Removes incomplete endings of a shortened label: signs and an open parenthesis.
std::string whole_label(std::string label) {
  if (std::count(label.begin(), label.end(), '(') > std::count(label.begin(), label.end(), ')'))
    label.resize(label.rfind('('));
  for (bool is_whole = false; !is_whole;) {
    is_whole = true;
    for (const std::string sign : {" ", ",", "÷", "×", "−", "+"}) {
      if (!label.ends_with(sign)) continue;
      label.resize(label.size() - sign.size());
      is_whole = false;
    }
  }
  return label;
}

}  // namespace

std::string common_label(const std::vector<PlottedValue>& values, const DisplayNames& names) {
  std::string shared = names.axis(values.front().text());
  for (const PlottedValue& value : values) {
    const std::string label = names.axis(value.text()) + " ";
    const auto is_end = [](char letter) { return letter == ' ' || letter == ','; };
    std::size_t end = 0;
    for (std::size_t i = 0; i <= shared.size() && i < label.size(); ++i) {
      const bool ends_word = is_end(label[i]) && (i == shared.size() || is_end(shared[i]));
      if (ends_word) end = i;
      if (i == shared.size() || label[i] != shared[i]) break;
    }
    shared.resize(end);
  }
  shared = whole_label(shared);
  return shared.find(' ') == std::string::npos ? kNoLabel : shared;
}

bool have_common_label(const std::vector<PlottedValue>& values, const DisplayNames& names) {
  return common_label(values, names) != kNoLabel;
}

std::string listed_metrics(const std::vector<PlottedValue>& values, const DisplayNames& names) {
  const std::string shared = common_label(values, names);
  if (shared != kNoLabel) return shared;
  if (values.size() > 2) return fmt::format("{} metrics", values.size());
  return names.axis(values.front().text()) + " and " + names.axis(values.back().text());
}

std::string not_above_zero_text(const std::vector<NamedLine>& lines) {
  std::vector<std::string> names;
  for (const NamedLine& line : lines) {
    if (std::any_of(line.series.points.begin(), line.series.points.end(),
                    [](const FigurePoint& point) { return point.mean && *point.mean <= 0; }))
      names.push_back(full_name(line));
  }
  if (names.empty()) return "";
  return fmt::format(" Not above 0, left out on the logarithmic axis: {}.", fmt::join(names, "; "));
}

std::string ranges_text(const std::vector<NamedLine>& lines, const Figure& figure) {
  std::string text;
  if (figure.x_range) text += range_text(figure.x_label, drawn_range(lines, *figure.x_range));
  if (figure.y_range) text += range_text(figure.y_label, *figure.y_range);
  if (text.empty()) return text;
  const bool shows_any = std::any_of(lines.begin(), lines.end(), [&](const NamedLine& line) {
    return std::any_of(line.series.points.begin(), line.series.points.end(),
                       [&](const FigurePoint& point) { return is_shown(point, figure); });
  });
  if (!shows_any) return text + " Nothing lies within.";
  return figure.y_range ? text + outside_text(lines, figure) : text;
}

std::string lines_caption(const std::string& title, const FigureSource& source,
                          const std::vector<LineGroup>& groups, const std::vector<ShownValue>& values,
                          const std::vector<FigurePanel>& panels) {
  const bool has_thin_lines = std::any_of(panels.begin(), panels.end(), [](const FigurePanel& panel) {
    return std::any_of(panel.series.begin(), panel.series.end(), [](const FigureSeries& series) {
      return has_seed_lines(series) && series.points.size() > 1;
    });
  });
  std::set<int> seeds;
  std::map<std::string, int> left_out;
  for (const LineGroup& group : groups)
    for (const ResultRow* row : group.rows) {
      seeds.insert(row->seed);
      if (row->state != "done") ++left_out[row->state];
    }
  std::string text = scenario_sentences(title, source);
  text += seeds.size() > 1 ? statistic_text(values, seeds.size(), source.table.is_decided, has_thin_lines)
                           : "One seed: no interval.";
  std::vector<std::string> counts;
  for (const auto& [state, count] : left_out) counts.push_back(fmt::format("{} {}", count, state));
  if (!counts.empty()) text += fmt::format(" Cells left out: {}.", fmt::join(counts, ", "));
  return text;
}

namespace {

constexpr const char* kReferenceMetric = "bayes_nmse";
/// A Bayes floor below this share of all other values would leave most of a logarithmic plot empty.
constexpr double kDistantFloor = 0.01;
constexpr std::size_t kMostPanels = 24;

/// A line shows one metric of `y` for one arm, or for one value of the swept path `series`. Its points are
/// the band_point of the finished cells, or the median_point of steps that may be censored.
///
/// Swept paths that x, series and `where` do not fix become panels. More than six lines are also split into
/// panels. A metric that does not apply to an arm has no line.
///
/// With other metrics, bayes_nmse is one dashed reference line for all arms. If it lies far below a
/// logarithmic axis, the caption states it instead. The caption also names seeds, interval, omitted cells and
/// censored values.
struct LinesOptions : FigureCommon, AxisLabels {
  std::string x, series = "arm";
  std::vector<std::string> y;
  Scale x_scale = Scale::linear, y_scale = Scale::linear;
  std::vector<double> x_range, y_range;  ///< [low, high]; empty: all
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    fields.required().add("x", x,
                          "a swept path, an expression (\"model.experts / data.clusters\"), step, or a "
                          "metric: points of the sweep then stand at its means over seeds");
    fields.required().add_text_or_list("y", y,
                                       "a metric or several, or expressions of metrics and swept paths");
    fields.add("series", series, "arm, or a swept path: one line for each");
    fields.add("x_scale", x_scale, {"linear", "log"}, "scale of the x axis");
    fields.add("y_scale", y_scale, {"linear", "log"}, "scale of the y axis");
    fields.optional().add("x_range", x_range, any_number(), 2,
                          "[low, high] of the x axis; what lies outside is left out (default: all)");
    fields.optional().add("y_range", y_range, any_number(), 2, "[low, high] of the y axis (default: all)");
    AxisLabels::bind(fields);
  }
  std::vector<std::string> metrics() const { return y; }
  LinePlaces places() const { return {x, series, where, arms}; }
};

/// The metrics of `y` with their own lines. The Bayes floor is one only if it is the only metric.
std::vector<std::string> measured_metrics(const LinesOptions& options) {
  std::vector<std::string> metrics = options.y;
  if (metrics.size() > 1) std::erase(metrics, kReferenceMetric);
  if (metrics.empty()) metrics.emplace_back(kReferenceMetric);
  return metrics;
}

/// The smallest positive mean; infinite if there is none.
double least_mean(const std::vector<NamedLine>& lines) {
  double least = std::numeric_limits<double>::infinity();
  for (const NamedLine& line : lines)
    for (const FigurePoint& point : line.series.points)
      if (point.mean && *point.mean > 0) least = std::min(least, *point.mean);
  return least;
}

std::optional<std::pair<double, double>> range_of(const std::vector<double>& ends) {
  return ends.empty() ? std::nullopt : std::optional(std::pair(ends.front(), ends.back()));
}

void check_range(const std::vector<double>& ends, Scale scale, const std::string& path) {
  const bool is_log = scale == Scale::log;
  if (ends.empty() || (ends.size() == 2 && ends[0] < ends[1] && (!is_log || ends[0] > 0))) return;
  throw UserError(path, fmt::format("got [{}], needs [low, high]{}", fmt::join(ends, ","),
                                    is_log ? " above 0 on a logarithmic scale" : ""));
}

/// Checks that every metric of the expression has values during training. Step 1 stands for any step after
/// the start. Metrics of change have no value at the start, which is allowed.
void check_along_steps(const FigureReferences& references, const std::string& y, const std::string& path) {
  for (const std::string& name : Expression::parse(y, path).names())
    if (find_metric(name)) references.check_metric_at(name, {ClaimStep::At::recorded, 1}, path);
}

/// Whether the text is this path, or an expression that names it.
bool names_path(const std::string& text, const std::string& searched, const std::string& path) {
  if (text.find(' ') == std::string::npos) return text == searched;
  const std::vector<std::string> names = Expression::parse(text, path).names();
  return std::find(names.begin(), names.end(), searched) != names.end();
}

/// The number of panels if every metric has a value.
std::size_t panel_count(const LinesOptions& options, const ResultTable& points) {
  ResultTable table = points;  // a row is repeated for every arm
  table.rows.clear();
  for (const std::string& arm : table.arms)
    for (const ResultRow& row : points.rows) {
      table.rows.push_back(row);
      table.rows.back().arm = arm;
    }
  std::vector<std::string> facets;
  for (const SweepPoint& facet : line_facets(options.places(), table)) facets.push_back(point_key(facet));
  std::vector<NamedLine> lines;
  for (const LineGroup& group : line_groups(options.places(), table))
    for (const std::string& metric : measured_metrics(options))
      lines.push_back(
          {point_key(group.facet), group.arm, group.value ? group.value->canonical() : "", metric, {}});
  return line_panels(facets, lines).size();
}

void check_lines(const FigureReferences& references, const LinesOptions& options, const std::string& path) {
  const std::string &x = options.x, &series = options.series;
  const bool is_measured = names_metric(x, path + ".x");
  if (!is_measured) check_plotted_path(references, x, "step", path + ".x");
  references.check_swept(series, "arm", path + ".series");
  if (x == series) throw UserError(path + ".series", "is the x axis already");
  const std::vector<std::string> arms = checked_arms(references, options, path);
  for (const std::string& arm : arms)
    if (is_measured) check_plotted_value(references, arm, x, path + ".x");
  const std::string y_path = path + ".y";
  for (std::size_t i = 0; i < options.y.size(); ++i) {
    const std::string place = options.y.size() > 1 ? fmt::format("{}[{}]", y_path, i) : y_path;
    for (const std::string& arm : arms) check_plotted_value(references, arm, options.y[i], place);
    if (x == "step") check_along_steps(references, options.y[i], place);
  }
  check_range(options.x_range, options.x_scale, path + ".x_range");
  check_range(options.y_range, options.y_scale, path + ".y_range");
  references.check_where(options.where, path);
  const std::string& searched = references.table().searched_path;
  const bool shows_search = names_path(x, searched, path + ".x") || series == searched ||
                            coordinate_of(options.where, searched) != nullptr;
  if (!searched.empty() && !shows_search) {
    throw UserError(
        path + ".x",
        fmt::format("leaves a panel for each value that the search along {0} places; needs {0} as x, or "
                    "in where, or a figure of kind crossing",
                    searched));
  }
  const std::size_t facets = line_facets(options.places(), references.table()).size();
  if (facets > kMostFacets)
    throw UserError(
        path + ".where",
        fmt::format("leaves {} panels, one for each value of the swept paths that are neither x nor "
                    "series; needs at most {}",
                    facets, kMostFacets));
  const std::size_t panels = panel_count(options, references.table());
  if (panels > kMostPanels)
    throw UserError(
        options.y.size() > 1 ? y_path : path + ".arms",
        fmt::format("makes {} panels of at most six lines over {} values of the swept paths that are neither "
                    "x nor series; needs at most {}: a figure for each metric, values in where, fewer arms",
                    panels, facets, kMostPanels));
}

/// The parts that line names need in a figure.
struct LineNames {
  std::string path;  ///< the series path
  bool of_arm, of_metric;
  bool of_axis;  ///< use axis labels, because legend labels may not distinguish all metrics
  const DisplayNames& names;
  const ResultTable& table;

  NamedLine line(const LineGroup& group, const std::string& metric, std::vector<FigurePoint> points) const {
    return {names.point(group.facet),
            of_arm ? shown_arm(names, table, group.arm) : "",
            group.value ? names.value(path, *group.value) : "",
            !of_metric ? ""
            : of_axis  ? names.axis(metric)
                       : names.legend(metric),
            FigureSeries{"", std::move(points)},
            names.axis(metric)};
  }
};

/// The Bayes loss for each series value and panel, from the first arm that measures it. `below` receives the
/// text about losses far below a logarithmic axis.
std::vector<NamedLine> floor_lines(const std::vector<LineGroup>& groups, const Horizontal& horizontal,
                                   const LineNames& names, const PlottedValue& floor, double least,
                                   bool is_sequential, std::string& below) {
  std::vector<std::pair<std::optional<SweepValue>, SweepPoint>> drawn;
  std::vector<NamedLine> floors;
  CensoredCount uncounted;
  for (const LineGroup& group : groups) {
    const std::pair place(group.value, group.facet);
    if (std::find(drawn.begin(), drawn.end(), place) != drawn.end()) continue;
    std::vector<FigurePoint> points = line_points(group, horizontal, floor, is_sequential, uncounted);
    const auto has_mean = [](const FigurePoint& point) { return point.mean.has_value(); };
    if (std::none_of(points.begin(), points.end(), has_mean)) continue;
    drawn.push_back(place);
    NamedLine line = names.line(group, floor.text(), std::move(points));
    line.arm.clear();
    line.metric = names.names.legend(floor.text());
    line.series.look = SeriesLook::reference;
    if (const double height = least_mean({line}); height < kDistantFloor * least) {
      below += fmt::format(" {}{}: {:.1g}, below the figure.", line.value.empty() ? "" : line.value + ", ",
                           line.metric, height);
    } else {
      floors.push_back(std::move(line));
    }
  }
  return floors;
}

/// [0, 1] of shares, [0, ∞) of other positive values; none for the rest.
std::optional<std::pair<double, double>> bounds_of(const std::vector<PlottedValue>& values) {
  const auto is_share = [](const PlottedValue& value) {
    const MetricGroup::Metric* const metric = value.is_name() ? find_metric(value.text()) : nullptr;
    return metric != nullptr &&
           (metric->help.starts_with("share of") || metric->help.ends_with("in [0, 1]") ||
            metric->name.find("accuracy") != std::string::npos ||
            metric->name.find("purity") != std::string::npos);
  };
  const auto is_positive = [](const PlottedValue& value) { return value.is_positive(); };
  if (std::all_of(values.begin(), values.end(), is_share)) return std::pair(0.0, 1.0);
  if (std::all_of(values.begin(), values.end(), is_positive))
    return std::pair(0.0, std::numeric_limits<double>::infinity());
  return std::nullopt;
}

Figure build_lines(const LinesOptions& options, const FigureSource& source) {
  const DisplayNames names(source.run);
  const std::vector<LineGroup> groups = line_groups(options.places(), source.table);
  const Horizontal horizontal(options.x, groups, source.table, names);

  Figure figure;
  figure.id = options.id;
  figure.x_log = horizontal.categories().empty() && options.x_scale == Scale::log;
  figure.y_log = options.y_scale == Scale::log;
  figure.x_range = range_of(options.x_range);
  figure.y_range = range_of(options.y_range);
  figure.x_label = options.x_label.value_or(names.axis(options.x));
  figure.x_categories = horizontal.categories();

  std::vector<PlottedValue> measured;
  for (const std::string& metric : measured_metrics(options)) measured.emplace_back(metric, source.table);
  const bool of_metric = measured.size() > 1;
  const std::string own_label =
      of_metric ? common_label(measured, names) : names.axis(measured.front().text());
  figure.y_label = options.y_label.value_or(own_label);
  figure.title =
      figure_title(options, source,
                   over_text(of_metric && !options.y_label ? listed_metrics(measured, names) : figure.y_label,
                             figure.x_label));
  std::set<std::string> arms;
  for (const LineGroup& group : groups) arms.insert(group.arm);
  const LineNames line_names = {options.series, arms.size() > 1 || (options.series == "arm" && !of_metric),
                                of_metric,      of_metric && !have_common_label(measured, names),
                                names,          source.table};
  std::vector<NamedLine> lines;
  CensoredCount censored;
  std::vector<ShownValue> shown;
  for (const PlottedValue& value : measured) shown.push_back({value});
  for (const LineGroup& group : groups)
    for (ShownValue& own : shown) {
      std::vector<FigurePoint> points =
          line_points(group, horizontal, own.value, source.table.is_decided, censored);
      if (points.empty()) continue;
      own.has_interval = own.has_interval || std::any_of(points.begin(), points.end(),
                                                         [](const FigurePoint& point) { return point.low; });
      lines.push_back(line_names.line(group, own.value.text(), std::move(points)));
      // Points at measured places have no order in which a line could join them.
      if (horizontal.is_measured()) lines.back().series.look = SeriesLook::marks;
    }
  std::string below;
  if (measured.size() < options.y.size()) {
    const double least = figure.y_log ? least_mean(lines) : 0;
    std::vector<NamedLine> floors =
        floor_lines(groups, horizontal, line_names, PlottedValue(kReferenceMetric, source.table), least,
                    source.table.is_decided, below);
    std::move(floors.begin(), floors.end(), std::back_inserter(lines));
  }
  std::vector<std::string> facets;
  for (const SweepPoint& facet : line_facets(options.places(), source.table))
    facets.push_back(names.point(facet));
  figure.panels = line_panels(facets, lines);
  figure.caption =
      lines_caption(figure.title, source, groups, shown, figure.panels) + below + censored_text(censored);
  if (figure.x_log && std::any_of(lines.begin(), lines.end(), [](const NamedLine& line) {
        return std::any_of(line.series.points.begin(), line.series.points.end(),
                           [](const FigurePoint& point) { return point.x <= 0; });
      }))
    figure.caption += fmt::format(" Left out on the logarithmic axis: {} 0.", figure.x_label);
  if (horizontal.is_measured()) figure.caption += fmt::format(" {}: means over seeds.", figure.x_label);
  if (figure.y_log) figure.caption += not_above_zero_text(lines);
  figure.caption += ranges_text(lines, figure);
  figure.y_bounds = bounds_of(measured);
  leave_out_outliers(figure);
  figure.caption += source.footnote;
  // The legend or the names of the panels say what the values are.
  if (figure.y_label == kNoLabel) figure.y_label.clear();
  return figure;
}

}  // namespace

FigureKind lines_kind() {
  return figure_kind(
      "lines", "lines over a swept path or over training; a panel for each value of the other swept paths",
      check_lines, build_lines);
}

namespace {

/// The values of a swept path in table order. One unset value if arms are the series.
std::vector<std::optional<SweepValue>> series_values(const std::string& path, const ResultTable& table) {
  if (path == "arm") return {std::nullopt};
  std::vector<std::optional<SweepValue>> values;
  for (const ResultRow& row : table.rows) {
    const SweepValue* const value = row.coordinate(path);
    if (value && std::find(values.begin(), values.end(), *value) == values.end()) values.push_back(*value);
  }
  return values;
}

bool has_errors(const RateData& data) {
  for (const auto& repetition : data.errors) {
    for (const std::optional<double>& error : repetition) {
      if (error) return true;
    }
  }
  return false;
}

/// The point at one n, with the fitted value if n lies inside the window.
RatePoint point_at(const RateEntry& entry, std::size_t size) {
  RatePoint point{entry.data.samples[size], {}, {}, {}, {}};
  const bool of_squares = entry.query.average == RateAverage::squares;
  std::vector<double> values;
  for (const auto& repetition : entry.data.errors) {
    if (const auto error = repetition[size])
      values.push_back(of_squares ? *error * *error : std::log(*error));
  }
  if (!values.empty()) {
    const MeanEstimate mean = mean_estimate(values);
    point.mean = of_squares ? std::sqrt(mean.mean) : std::exp(mean.mean);
    if (mean.interval) {
      // Interval of the root of a mean m with half-width h: ln √m ± h / 2m.
      const double scale = of_squares ? 2 * mean.mean : 1;
      point.low = *point.mean * std::exp((mean.interval->low - mean.mean) / scale);
      point.high = *point.mean * std::exp((mean.interval->high - mean.mean) / scale);
    }
  }
  if (entry.query.reads(point.x) && entry.estimate.slope)
    point.fitted = std::exp(entry.estimate.intercept) * std::pow(point.x, entry.estimate.slope->mean);
  return point;
}

void check_rate_panels(const FigureReferences& references, const RateOptions& options,
                       const std::string& path) {
  const std::vector<std::string> arms = checked_arms(references, options, path);
  const std::size_t panels = options.rows.size() * options.columns.size();
  if (panels != arms.size()) {
    throw UserError(path + ".rows", fmt::format("and columns make {} panels, needs one for each of {} arms",
                                                panels, arms.size()));
  }
  references.check_swept(options.series, "arm", path + ".series");
  for (const std::string& metric : options.y)
    for (const std::string& arm : arms) references.check_metric(arm, metric, path + ".y");
  for (const auto& [arm, rate] : options.reported) references.check_arm(arm, path + ".reported." + arm);
  references.check_sizes(options.where, options.window, options.x, {options.x, options.series}, path,
                         path + ".x");
}

}  // namespace

void RateOptions::bind(Fields& fields) {
  FigureCommon::bind(fields);
  fields.required().add("x", x, "the swept path whose values are n");
  fields.required().add_text_or_list("y", y, "a metric or several: errors");
  fields.required().add_list("rows", rows, 1, "names of the rows, whose panels are arms in order");
  fields.required().add_list("columns", columns, 1, "names of the columns");
  fields.add("series", series, "arm, or a swept path: one line for each");
  fields.optional().add("window", window, positive(), 2, "[least x, most x] of the slopes (default: all)");
  bind_average(fields, average);
  fields.optional().add("reported", reported, "arm → the rate that the source gives");
  AxisLabels::bind(fields);
}

std::vector<RateEntry> rate_entries(const RateOptions& options, const ResultTable& table) {
  std::vector<RateEntry> entries;
  for (const std::string& arm : own_shown_arms(options.arms, table)) {
    for (const std::optional<SweepValue>& value : series_values(options.series, table)) {
      for (const std::string& metric : options.y) {
        RateEntry entry{arm, legend_label(metric), RateQuery{arm, metric, options.x}, {}, {}};
        entry.query.where = options.where;
        if (!options.window.empty()) entry.query.window = Interval{options.window[0], options.window[1]};
        entry.query.average = options.average;
        if (value) {
          entry.query.where.emplace_back(options.series, *value);
          entry.name = fmt::format("{} {}, {}", value->text(), legend_label(options.series), entry.name);
        }
        entry.estimate = estimate_rate(rate_data(table, entry.query));
        RateQuery everywhere = entry.query;
        everywhere.window.reset();
        entry.data = rate_data(table, everywhere);
        if (has_errors(entry.data)) entries.push_back(std::move(entry));
      }
    }
  }
  return entries;
}

namespace {

RatePanels build_rate_panels(const RateOptions& options, const FigureSource& source) {
  const std::vector<std::string> arms = own_shown_arms(options.arms, source.table);
  RatePanels figure;
  figure.id = options.id;
  figure.x_label = options.x_label.value_or(DisplayNames(source.run).axis(options.x));
  figure.y_label = options.y_label.value_or("error");
  figure.title = figure_title(options, source, over_text(figure.y_label, figure.x_label));
  figure.rows = options.rows;
  figure.columns = options.columns;
  figure.references = {{-0.5, "slope −1/2"}, {-0.25, "slope −1/4"}};
  figure.panels.resize(arms.size());
  std::size_t repetitions = 0;
  for (const RateEntry& entry : rate_entries(options, source.table)) {
    RateLine line{entry.name, {}, ""};
    for (std::size_t s = 0; s < entry.data.samples.size(); ++s) line.points.push_back(point_at(entry, s));
    if (const auto& slope = entry.estimate.slope) {
      line.slope = signed_text(fmt::format("{:.2f}", slope->mean));
      if (slope->interval)
        line.slope += fmt::format(" ± {:.2f}", (slope->interval->high - slope->interval->low) / 2);
    }
    repetitions = std::max(repetitions, entry.data.errors.size());
    const auto arm = std::find(arms.begin(), arms.end(), entry.arm);
    figure.panels[static_cast<std::size_t>(arm - arms.begin())].push_back(std::move(line));
  }
  figure.caption = scenario_sentences(figure.title, source);
  figure.caption +=
      options.average == RateAverage::squares
          ? fmt::format(
                "Roots of mean squares of {} repetitions with 95 % intervals; lines and numbers: slope of "
                "their "
                "ln on ln n, 95 % interval of the jackknife over repetitions.",
                repetitions)
          : fmt::format(
                "Geometric means of {} repetitions with 95 % intervals; lines and numbers: mean slope of ln "
                "error on ln n, 95 % Student-t interval over repetitions.",
                repetitions);
  int left_out = 0;
  for (const ResultRow& row : source.table.rows) left_out += row.state != "done" ? 1 : 0;
  if (left_out > 0) figure.caption += fmt::format(" Cells left out: {}.", left_out);
  figure.caption += source.footnote;
  return figure;
}

}  // namespace

FigureKind rate_panels_kind() {
  return figure_kind("rate_panels", "a panel for each arm with slopes of ln y on ln x", check_rate_panels,
                     build_rate_panels);
}

}  // namespace moelab
