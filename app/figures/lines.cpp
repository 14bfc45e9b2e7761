#include "app/figures/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "app/figures/display_names.h"
#include "app/figures/line_caption.h"
#include "app/figures/line_groups.h"
#include "app/figures/line_panels.h"
#include "app/figures/line_points.h"
#include "app/figures/shown_arms.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/references.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char* kReferenceMetric = "bayes_nmse";
/// On a logarithmic axis a floor below this share of everything else would leave the figure empty.
constexpr double kDistantFloor = 0.01;
constexpr std::size_t kMostPanels = 24;

std::string facet_name(const SweepPoint& facet, const DisplayNames& names) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : facet) parts.push_back(names.value(path, value_text(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The metrics of `y` that have lines of their own: the Bayes floor has one alone.
std::vector<std::string> measured_metrics(const Json& figure) {
  const Json& y = figure.at("y");
  std::vector<std::string> metrics =
      y.is_array() ? y.get<std::vector<std::string>>() : std::vector<std::string>{y.get<std::string>()};
  const std::size_t all = metrics.size();
  if (all > 1) std::erase(metrics, kReferenceMetric);
  if (metrics.empty()) metrics.emplace_back(kReferenceMetric);
  return metrics;
}

/// The least mean above zero; infinite without one.
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

/// Every metric of the expression has values on the way. Any step but the start will do: there metrics of
/// change have none, which leaves a line all the same.
void check_along_steps(const References& references, const std::string& y, const std::string& path) {
  for (const std::string& name : Expression::parse(y, path).names())
    if (find_metric(name)) references.check_metric_at(name, {ClaimStep::At::recorded, 1}, path);
}

/// How many panels the figure has when every metric has a value.
std::size_t panel_count(const Json& figure, const ResultTable& points) {
  ResultTable table = points;  // where a row stands for all arms
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

Drawing draw_lines(const Json& figure, const FigureSource& source) {
  return drawing_of(build_figure(figure, source));
}

/// The parts of the names of a figure's lines.
struct LineNames {
  std::string path;  ///< the series
  bool of_arm, of_metric;
  bool of_axis;  ///< metrics by their whole names: short ones tell apart those that share words alone
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

/// The Bayes loss of each value of the series path and panel, drawn by the first arm that knows it; those
/// that lie far below a logarithmic axis are told in `below`.
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
          draw_lines,
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

}  // namespace moelab
