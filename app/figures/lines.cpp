#include "app/figures/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "app/figures/figure_kind.h"
#include "app/scenario/checks.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/overrides.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The y label of metrics that share no words.
constexpr const char* kNoLabel = "value";

std::string range_text(const std::string& label, const std::pair<double, double>& range) {
  return fmt::format(" Shown: {} from {:g} to {:g}.", label, range.first, range.second);
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
  if (figure.x_range) text += range_text(figure.x_label, *figure.x_range);
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
                          const std::vector<LineGroup>& groups, const std::vector<ShownValue>& values) {
  std::set<int> seeds;
  std::map<std::string, int> left_out;
  for (const LineGroup& group : groups)
    for (const ResultRow* row : group.rows) {
      seeds.insert(row->seed);
      if (row->state != "done") ++left_out[row->state];
    }
  std::string text = scenario_sentences(title, source);
  text += seeds.size() > 1 ? statistic_text(values, seeds.size(), source.table.is_decided)
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

std::string facet_name(const SweepPoint& facet, const DisplayNames& names) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : facet) parts.push_back(names.value(path, value_text(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The metrics of `y` with their own lines. The Bayes floor is one only if it is the only metric.
std::vector<std::string> measured_metrics(const Json& figure) {
  const Json& y = figure.at("y");
  std::vector<std::string> metrics =
      y.is_array() ? y.get<std::vector<std::string>>() : std::vector<std::string>{y.get<std::string>()};
  const std::size_t all = metrics.size();
  if (all > 1) std::erase(metrics, kReferenceMetric);
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

std::optional<std::pair<double, double>> range_of(const Json& figure, const char* name) {
  if (!figure.contains(name)) return std::nullopt;
  return std::pair(figure.at(name)[0].get<double>(), figure.at(name)[1].get<double>());
}

void check_range(const Json& figure, const char* name, const char* scale, const std::string& path) {
  const auto range = range_of(figure, name);
  if (!range) return;
  const bool is_log = figure.value(scale, "linear") == "log";
  if (range->first < range->second && (!is_log || range->first > 0)) return;
  throw UserError(join_path(path, name), "got " + abbreviated(figure.at(name)) + ", needs [low, high]" +
                                             (is_log ? " above 0 on a logarithmic scale" : ""));
}

/// Checks that every metric of the expression has values during training. Step 1 stands for any step after
/// the start. Metrics of change have no value at the start, which is allowed.
void check_along_steps(const References& references, const std::string& y, const std::string& path) {
  for (const std::string& name : Expression::parse(y, path).names())
    if (find_metric(name)) references.check_metric_at(name, {ClaimStep::At::recorded, 1}, path);
}

/// The number of panels if every metric has a value.
std::size_t panel_count(const Json& figure, const ResultTable& points) {
  ResultTable table = points;  // a row is repeated for every arm
  table.rows.clear();
  for (const std::string& arm : table.arms)
    for (const ResultRow& row : points.rows) {
      table.rows.push_back(row);
      table.rows.back().arm = arm;
    }
  std::vector<std::string> facets;
  for (const SweepPoint& facet : line_facets(figure, table)) facets.push_back(point_json(facet).dump());
  std::vector<NamedLine> lines;
  for (const LineGroup& group : line_groups(figure, table))
    for (const std::string& metric : measured_metrics(figure))
      lines.push_back({point_json(group.facet).dump(),
                       group.arm,
                       group.value ? group.value->canonical() : "",
                       metric,
                       {}});
  return line_panels(facets, lines).size();
}

void check_lines(const References& references, const Json& figure, const std::string& path) {
  const std::string x = figure.at("x"), series = figure.at("series");
  const bool is_measured = names_metric(x, join_path(path, "x"));
  if (!is_measured) check_plotted_path(references, x, "step", join_path(path, "x"));
  references.check_swept(series, "arm", join_path(path, "series"));
  if (x == series) throw UserError(join_path(path, "series"), "is the x axis already");
  const std::vector<std::string> arms = checked_arms(references, figure, path);
  for (const std::string& arm : arms)
    if (is_measured) check_plotted_value(references, arm, x, join_path(path, "x"));
  const std::string y_path = join_path(path, "y");
  const bool is_list = figure.at("y").is_array();
  const Json metrics = is_list ? figure.at("y") : Json::array({figure.at("y")});
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    for (const std::string& arm : arms)
      check_plotted_value(references, arm, metrics[i], is_list ? join_path(y_path, i) : y_path);
    if (x == "step") check_along_steps(references, metrics[i], is_list ? join_path(y_path, i) : y_path);
  }
  check_range(figure, "x_range", "x_scale", path);
  check_range(figure, "y_range", "y_scale", path);
  references.check_where(where_of(figure), path);
  const std::string& searched = references.table().searched_path;
  const bool shows_search = x.find(searched) != std::string::npos || series == searched ||
                            figure.value("where", Json::object()).contains(searched);
  if (!searched.empty() && !shows_search) {
    throw UserError(
        join_path(path, "x"),
        fmt::format("leaves a panel for each value that the search along {0} places; needs {0} as x, or "
                    "in where, or a figure of kind crossing",
                    searched));
  }
  const std::size_t facets = line_facets(figure, references.table()).size();
  if (facets > kMostFacets)
    throw UserError(
        join_path(path, "where"),
        fmt::format("leaves {} panels, one for each value of the swept paths that are neither x nor "
                    "series; needs at most {}",
                    facets, kMostFacets));
  const std::size_t panels = panel_count(figure, references.table());
  if (panels > kMostPanels)
    throw UserError(
        metrics.size() > 1 ? y_path : join_path(path, "arms"),
        fmt::format("makes {} panels of at most six lines over {} values of the swept paths that are neither "
                    "x nor series; needs at most {}: a figure for each metric, values in where, fewer arms",
                    panels, facets, kMostPanels));
}

AnyFigure any_lines(const Json& figure, const FigureSource& source) {
  return build_figure(figure, source);
}

/// The parts that line names need in a figure.
struct LineNames {
  std::string path;  ///< the series path
  bool of_arm, of_metric;
  bool of_axis;  ///< use axis labels, because legend labels may not distinguish all metrics
  const DisplayNames& names;
  const ResultTable& table;

  NamedLine line(const LineGroup& group, const std::string& metric, std::vector<FigurePoint> points) const {
    return {facet_name(group.facet, names),
            of_arm ? shown_arm(names, table, group.arm) : "",
            group.value ? names.value(path, value_text(*group.value)) : "",
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

}  // namespace

FigureKind lines_kind() {
  const Shape scale = Shape::choice({"linear", "log"});
  const Shape range = Shape::list(Shape::real(), 2);
  return {"lines",
          "lines over a swept path or over training; a panel for each value of the other swept paths",
          {{"x", Shape::text(),
            "a swept path, an expression of swept paths (\"model.experts / data.clusters\"), or step; a "
            "metric, or an expression with metrics: points of the sweep then stand at its means over seeds"},
           {"y", Shape::either({Shape::text(), Shape::list(Shape::text(), 1)}),
            "a metric or several, or expressions of metrics and swept paths"},
           {"series", Shape::text(), "arm, or a swept path: one line for each", "arm"},
           {"x_scale", scale, "scale of the x axis", "linear"},
           {"y_scale", scale, "scale of the y axis", "linear"},
           {"x_range", range, "[low, high] of the x axis; what lies outside is left out (default: all)",
            kOptional},
           {"y_range", range, "[low, high] of the y axis (default: all)", kOptional},
           {"x_label", Shape::text(), "label of the x axis", kOptional},
           {"y_label", Shape::text(), "label of the y axis", kOptional}},
          check_lines,
          any_lines,
          "y"};
}

Figure build_figure(const Json& description, const FigureSource& source) {
  const std::string x = description.at("x").get<std::string>();
  const std::string path = description.value("series", "arm");
  const DisplayNames names(source.plan);
  const std::vector<LineGroup> groups = line_groups(description, source.table);
  const Horizontal horizontal(x, groups, source.table, names);

  Figure figure;
  figure.id = description.at("id").get<std::string>();
  figure.x_log = horizontal.categories().empty() && description.value("x_scale", "linear") == "log";
  figure.y_log = description.value("y_scale", "linear") == "log";
  figure.x_range = range_of(description, "x_range");
  figure.y_range = range_of(description, "y_range");
  figure.x_label = description.value("x_label", names.axis(x));
  figure.x_categories = horizontal.categories();

  std::vector<PlottedValue> measured;
  for (const std::string& metric : measured_metrics(description)) measured.emplace_back(metric, source.table);
  const bool of_metric = measured.size() > 1;
  const std::string own_label =
      of_metric ? common_label(measured, names) : names.axis(measured.front().text());
  figure.y_label = description.value("y_label", own_label);
  figure.title = figure_title(
      description, source,
      (of_metric && !description.contains("y_label") ? listed_metrics(measured, names) : figure.y_label) +
          " over " + figure.x_label);
  std::set<std::string> arms;
  for (const LineGroup& group : groups) arms.insert(group.arm);
  const LineNames line_names = {path,      arms.size() > 1 || (path == "arm" && !of_metric),
                                of_metric, of_metric && !have_common_label(measured, names),
                                names,     source.table};
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
    }
  std::string below;
  if (const Json& y = description.at("y"); y.is_array() && measured.size() < y.size()) {
    const double least = figure.y_log ? least_mean(lines) : 0;
    std::vector<NamedLine> floors =
        floor_lines(groups, horizontal, line_names, PlottedValue(kReferenceMetric, source.table), least,
                    source.table.is_decided, below);
    std::move(floors.begin(), floors.end(), std::back_inserter(lines));
  }
  std::vector<std::string> facets;
  for (const SweepPoint& facet : line_facets(description, source.table))
    facets.push_back(facet_name(facet, names));
  figure.panels = line_panels(facets, lines);
  figure.caption = lines_caption(figure.title, source, groups, shown) + below + censored_text(censored);
  if (figure.x_log && std::any_of(lines.begin(), lines.end(), [](const NamedLine& line) {
        return std::any_of(line.series.points.begin(), line.series.points.end(),
                           [](const FigurePoint& point) { return point.x <= 0; });
      }))
    figure.caption += fmt::format(" Left out on the logarithmic axis: {} 0.", figure.x_label);
  if (horizontal.is_measured()) figure.caption += fmt::format(" {}: means over seeds.", figure.x_label);
  if (figure.y_log) figure.caption += not_above_zero_text(lines);
  figure.caption += ranges_text(lines, figure);
  figure.caption += source.footnote;
  return figure;
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

void check_rate_panels(const References& references, const Json& figure, const std::string& path) {
  const std::vector<std::string> arms = checked_arms(references, figure, path);
  const std::size_t panels = figure.at("rows").size() * figure.at("columns").size();
  if (panels != arms.size()) {
    throw UserError(
        join_path(path, "rows"),
        fmt::format("and columns make {} panels, needs one for each of {} arms", panels, arms.size()));
  }
  const std::string x = figure.at("x"), series = figure.at("series");
  references.check_swept(series, "arm", join_path(path, "series"));
  const Json& y = figure.at("y");
  for (const Json& metric : y.is_array() ? y : Json::array({y})) {
    for (const std::string& arm : arms) references.check_metric(arm, metric, join_path(path, "y"));
  }
  const Json reported = figure.value("reported", Json::object());
  for (const auto& [arm, rate] : reported.items())
    references.check_arm(arm, join_path(join_path(path, "reported"), arm));
  references.check_sizes(where_of(figure), figure.value("window", std::vector<double>()), x, {x, series},
                         path, join_path(path, "x"));
}

AnyFigure any_rate_panels(const Json& figure, const FigureSource& source) {
  return build_rate_panels(figure, source);
}

}  // namespace

FigureKind rate_panels_kind() {
  return {
      "rate_panels",
      "a panel for each arm with slopes of ln y on ln x",
      {{"x", Shape::text(), "the swept path whose values are n"},
       {"y", Shape::either({Shape::text(), Shape::list(Shape::text(), 1)}), "a metric or several: errors"},
       {"rows", Shape::list(Shape::text(), 1), "names of the rows, whose panels are arms in order"},
       {"columns", Shape::list(Shape::text(), 1), "names of the columns"},
       {"series", Shape::text(), "arm, or a swept path: one line for each", "arm"},
       {"window", Shape::list(Shape::positive_real(), 2), "[least x, most x] of the slopes (default: all)",
        kOptional},
       rate_average_field(),
       {"reported", Shape::map(Shape::text()), "arm → the rate that the source gives", kOptional},
       {"x_label", Shape::text(), "label of the x axis", kOptional},
       {"y_label", Shape::text(), "label of the y axis", kOptional}},
      check_rate_panels,
      any_rate_panels,
      "y"};
}

std::vector<RateEntry> rate_entries(const Json& description, const ResultTable& table) {
  const std::string x = description.at("x"), series = description.value("series", "arm");
  const Json& y = description.at("y");
  const Json metrics = y.is_array() ? y : Json::array({y});
  std::vector<RateEntry> entries;
  for (const std::string& arm : own_shown_arms(description, table)) {
    for (const std::optional<SweepValue>& value : series_values(series, table)) {
      for (const Json& metric : metrics) {
        RateEntry entry{arm, legend_label(metric), read_rate_query(description, arm, metric, x), {}, {}};
        if (value) {
          entry.query.where.emplace_back(series, *value);
          entry.name = fmt::format("{} {}, {}", value->text(), legend_label(series), entry.name);
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

RatePanels build_rate_panels(const Json& description, const FigureSource& source) {
  const std::vector<std::string> arms = own_shown_arms(description, source.table);
  RatePanels figure;
  figure.id = description.at("id");
  figure.x_label = description.value("x_label", axis_label(description.at("x")));
  figure.y_label = description.value("y_label", "error");
  figure.title = figure_title(description, source, figure.y_label + " over " + figure.x_label);
  figure.rows = description.at("rows").get<std::vector<std::string>>();
  figure.columns = description.at("columns").get<std::vector<std::string>>();
  figure.references = {{-0.5, "slope −1/2"}, {-0.25, "slope −1/4"}};
  figure.panels.resize(arms.size());
  std::size_t repetitions = 0;
  for (const RateEntry& entry : rate_entries(description, source.table)) {
    RateLine line{entry.name, {}, ""};
    for (std::size_t s = 0; s < entry.data.samples.size(); ++s) line.points.push_back(point_at(entry, s));
    if (const auto& slope = entry.estimate.slope) {
      line.slope = fmt::format("{:.2f}", slope->mean);
      if (slope->interval)
        line.slope += fmt::format(" ± {:.2f}", (slope->interval->high - slope->interval->low) / 2);
    }
    repetitions = std::max(repetitions, entry.data.errors.size());
    const auto arm = std::find(arms.begin(), arms.end(), entry.arm);
    figure.panels[static_cast<std::size_t>(arm - arms.begin())].push_back(std::move(line));
  }
  figure.caption = scenario_sentences(figure.title, source);
  figure.caption +=
      description.value("average", "logarithms") == "squares"
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

}  // namespace moelab
