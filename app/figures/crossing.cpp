#include "app/figures/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/stats/expression.h"
#include "app/figures/crossing_columns.h"
#include "app/figures/crossing_laws.h"
#include "app/figures/display_names.h"
#include "app/figures/line_groups.h"
#include "app/figures/line_panels.h"
#include "app/figures/plotted_value.h"
#include "app/figures/shown_arms.h"
#include "app/scenario/references.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

void check_crossing_figure(const References& references, const Json& figure, const std::string& path) {
  const std::string& searched = references.table().searched_path;
  if (searched.empty()) throw UserError(join_path(path, "kind"), "needs a sweep that searches a crossing");
  const std::string x = figure.at("x"), x_path = join_path(path, "x");
  check_plotted_path(references, x, "", x_path);
  const auto check_other = [&](const std::string& name, const std::string& text, const std::string& at) {
    if (name == searched) throw UserError(at, "got '" + text + "', needs another path than the searched one");
  };
  const auto check_other_numbers = [&](const std::string& text, const std::string& at) {
    for (const std::string& name : Expression::parse(text, at).names()) {
      references.check_number(name, at);
      check_other(name, text, at);
    }
  };
  check_other_numbers(x, x_path);
  if (figure.contains("y")) check_plotted_path(references, figure.at("y"), "", join_path(path, "y"));
  const std::string series = figure.value("series", "arm"), series_path = join_path(path, "series");
  references.check_swept(series, "arm", series_path);
  check_other(series, series, series_path);
  for (const char* field : {"power_law", "laws"}) {
    for (const Json& law : figure.value(field, Json::array()))
      check_other_numbers(law, join_path(path, field));
  }
  const SweepPoint where = where_of(figure);
  references.check_where(where, path);
  for (const auto& coordinate : where) {
    if (coordinate.first == searched)
      throw UserError(join_path(join_path(path, "where"), searched),
                      "is searched, and has no value to choose");
  }
  checked_arms(references, figure, path);
}

/// The crossings of an arm among those shown.
std::vector<const CrossingColumn*> found_by(const std::vector<const CrossingColumn*>& shown,
                                            const std::string& arm) {
  std::vector<const CrossingColumn*> found;
  std::copy_if(shown.begin(), shown.end(), std::back_inserter(found),
               [&](const CrossingColumn* column) { return column->arm == arm && column->estimate; });
  return found;
}

FigurePoint crossing_point(const CrossingColumn& column, const CrossingSearch& search, const PlottedValue& x,
                           const PlottedValue& y) {
  FigurePoint point{value_of_column(x, column, search, search.low).value_or(0)};
  if (!column.estimate) return point;
  const auto drawn = [&](double crossing) { return value_of_column(y, column, search, crossing); };
  point.mean = drawn(*column.estimate);
  point.low = drawn(column.low.value_or(search.low));
  point.high = drawn(column.high.value_or(search.high));
  if (point.low && point.high && *point.low > *point.high) std::swap(point.low, point.high);
  return point;
}

std::string column_name(const SweepPoint& at, const DisplayNames& names) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : at) parts.push_back(names.value(path, value_text(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string crossing_caption(const std::string& title, const FigureSource& source,
                             const CrossingSearch& search, const std::vector<const CrossingColumn*>& shown,
                             const DisplayNames& names) {
  int seeds = 0;
  for (const ResultRow& row : source.table.rows) seeds = std::max(seeds, is_imported(row) ? 0 : row.seed + 1);
  std::string text = scenario_sentences(title, source);
  text += fmt::format(
      "Where the mean over {} seeds of {} crosses {}, by bisection", seeds, names.legend(search.metric),
      search.level ? fmt::format("{:g}", *search.level) : "that of " + names.arm(search.against));
  text += seeds > 1 ? "; band: the 95 % interval, where a t-test does not tell the mean from it." : ".";
  const auto is_open = [](const CrossingColumn* column) {
    return column->estimate && (!column->low || !column->high);
  };
  if (seeds > 1 && std::any_of(shown.begin(), shown.end(), is_open))
    text += " Intervals that are open end at the range of the search.";
  for (const CrossingColumn* column : shown) {
    if (column->estimate) continue;
    const std::string at = column_name(column->at, names);
    text += fmt::format(" {}{}{}: {}.", names.arm(column->arm), at.empty() ? "" : ", ", at, column->note);
  }
  return text;
}

std::vector<const CrossingColumn*> shown_columns(const std::vector<CrossingColumn>& columns,
                                                 const SweepPoint& where,
                                                 const std::vector<std::string>& arms) {
  std::vector<const CrossingColumn*> shown;
  for (const CrossingColumn& column : columns) {
    if (has_coordinates(column.at, where) && std::find(arms.begin(), arms.end(), column.arm) != arms.end())
      shown.push_back(&column);
  }
  return shown;
}

/// A line for each arm and value of the series, in panels by what neither x nor these settle.
std::vector<FigurePanel> crossing_panels(const Json& figure, const FigureSource& source,
                                         const CrossingSearch& search,
                                         const std::vector<const CrossingColumn*>& shown,
                                         const std::vector<std::string>& arms, const DisplayNames& names) {
  const PlottedValue x(figure.at("x"), source.table), y(figure.value("y", search.path), source.table);
  const std::string series = figure.value("series", "arm");
  const std::vector<std::string> apart = facet_paths(figure, source.table, search.path);
  const bool is_arm_told = series == "arm" || arms.size() > 1;
  std::vector<std::string> facets;
  std::vector<NamedLine> lines;
  for (const CrossingColumn* const column : shown) {
    SweepPoint facet = column->at;
    std::erase_if(facet, [&](const auto& coordinate) {
      return std::find(apart.begin(), apart.end(), coordinate.first) == apart.end();
    });
    const SweepValue* const value = series == "arm" ? nullptr : coordinate_of(column->at, series);
    const NamedLine own{column_name(facet, names),
                        is_arm_told ? shown_arm(names, source.table, column->arm) : "",
                        value ? names.value(series, value_text(*value)) : "",
                        "",
                        {}};
    if (std::find(facets.begin(), facets.end(), own.facet) == facets.end()) facets.push_back(own.facet);
    auto line = std::find_if(lines.begin(), lines.end(), [&](const NamedLine& known) {
      return known.facet == own.facet && known.arm == own.arm && known.value == own.value;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), own);
    line->series.points.push_back(crossing_point(*column, search, x, y));
  }
  for (NamedLine& line : lines)
    std::stable_sort(line.series.points.begin(), line.series.points.end(),
                     [](const FigurePoint& left, const FigurePoint& right) { return left.x < right.x; });
  return line_panels(facets, lines);
}

Drawing draw_crossing(const Json& figure, const FigureSource& source) {
  return drawing_of(build_crossing_figure(figure, source));
}

}  // namespace

FigureKind crossing_kind() {
  const Shape scale = Shape::choice({"linear", "log"});
  return {"crossing",
          "where a searched metric crosses its level, over another swept path: a line for each arm",
          {{"x", Shape::text(),
            "a swept path, or an expression of swept paths (\"model.experts / data.clusters\")"},
           {"y", Shape::text(),
            "an expression of swept paths, among them the searched one (default: that one)", kOptional},
           {"series", Shape::text(), "a swept path whose values are lines of their own (default: \"arm\")",
            kOptional},
           {"power_law", Shape::list(Shape::text(), 1),
            "swept paths to whose powers the crossings are fitted; the caption has the exponents, with 95 % "
            "intervals",
            kOptional},
           {"laws", Shape::list(Shape::text(), 1),
            "expressions of swept paths that the crossings may be proportional to "
            "(\"data.clusters * log ( data.clusters )\"); the caption has what is left in the logarithm",
            kOptional},
           {"x_scale", scale, "scale of the x axis", "linear"},
           {"y_scale", scale, "scale of the y axis", "linear"},
           {"x_label", Shape::text(), "label of the x axis", kOptional},
           {"y_label", Shape::text(), "label of the y axis", kOptional}},
          check_crossing_figure,
          draw_crossing};
}

Figure build_crossing_figure(const Json& description, const FigureSource& source) {
  const auto search = CrossingSearch::of_plan(source.plan.value("crossing", Json()));
  if (!search)
    throw UserError("figures." + description.at("id").get<std::string>(), "the plan searches no crossing");
  const DisplayNames names(source.plan);
  const std::string x = description.at("x"), y = description.value("y", search->path);
  const std::vector<std::string> arms = own_shown_arms(description, source.table);

  Figure figure;
  figure.id = description.at("id");
  figure.x_log = description.value("x_scale", "linear") == "log";
  figure.y_log = description.value("y_scale", "linear") == "log";
  figure.x_label = description.value("x_label", names.axis(x));
  figure.y_label = description.value("y_label", names.axis(y));
  const std::vector<CrossingColumn> columns = crossing_columns(*search, source.table);
  const std::vector<const CrossingColumn*> shown = shown_columns(columns, where_of(description), arms);
  figure.panels = crossing_panels(description, source, *search, shown, arms, names);
  figure.title =
      figure_title(description, source,
                   fmt::format("where {} crosses, over {}", names.legend(search->metric), figure.x_label));
  figure.caption = crossing_caption(figure.title, source, *search, shown, names);
  for (const std::string& arm : arms) {
    const std::string laws = crossing_laws(description, found_by(shown, arm), *search, source.table, names);
    if (!laws.empty())
      figure.caption += fmt::format(" Fitted{}: {}.", arms.size() > 1 ? " to " + names.arm(arm) : "", laws);
  }
  figure.caption += source.footnote;
  return figure;
}

}  // namespace moelab
