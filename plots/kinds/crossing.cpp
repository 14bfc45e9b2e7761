#include "plots/kinds/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/stats/expression.h"
#include "analysis/stats/rates.h"
#include "analysis/stats/result_table.h"
#include "plots/kinds/figure_kind.h"
#include "plots/kinds/lines.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The rows of an arm at a point of the other paths, ordered by the searched value.
struct TableColumn {
  std::string arm;
  SweepPoint at;
  std::map<double, std::vector<const ResultRow*>> rows;
};

std::vector<TableColumn> table_columns(const CrossingRule& search, const ResultTable& table) {
  std::vector<TableColumn> columns;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const ResultRow& row : table.rows) {
    const SweepValue* const value = row.coordinate(search.path);
    if (value == nullptr || !value->number() || is_imported(row)) continue;
    SweepPoint at = row.point;
    std::erase_if(at, [&](const auto& coordinate) { return coordinate.first == search.path; });
    const auto [place, is_new] = places.try_emplace(std::pair(row.arm, point_key(at)), columns.size());
    if (is_new) columns.push_back({row.arm, std::move(at), {}});
    columns[place->second].rows[*value->number()].push_back(&row);
  }
  return columns;
}

/// Reads the values of the searched arm and of its reference arm.
class CurveReader {
 public:
  CurveReader(const CrossingRule& search, const ResultTable& table)
      : search_(search), metric_(search.metric, table) {}

  CurvePoint point(double value, const std::vector<const ResultRow*>& rows,
                   const std::vector<const ResultRow*>* against) const {
    CurvePoint point{search_.scaled(value), {}, true};
    for (const ResultRow* row : rows) {
      const std::size_t seed = static_cast<std::size_t>(row->seed);
      if (point.seeds.size() <= seed) point.seeds.resize(seed + 1);
      point.is_complete &= row->state != "missing";
      std::optional<double> level = search_.level;
      if (level && metric_.is_positive()) level = std::log(*level);
      if (against != nullptr) {
        const auto other = std::find_if(against->begin(), against->end(), [&](const ResultRow* candidate) {
          return candidate->seed == row->seed;
        });
        const bool is_recorded = other != against->end() && (*other)->state != "missing";
        point.is_complete &= is_recorded;
        level = is_recorded ? number(**other) : std::nullopt;
      }
      const std::optional<double> own = number(*row);
      if (own && level) point.seeds[seed] = *own - *level;
    }
    return point;
  }

 private:
  std::optional<double> number(const ResultRow& row) const {
    if (row.state != "done") return std::nullopt;
    const std::optional<Interval> value = metric_.of(row, row.metrics);
    if (!value || !std::isfinite(value->low)) return std::nullopt;
    if (!metric_.is_positive()) return value->low;
    // A metric that is positive by definition can underflow to 0.
    return value->low > 0 ? std::optional(std::log(value->low)) : std::nullopt;
  }

  const CrossingRule& search_;
  PlottedValue metric_;
};

/// The curve of a searched column and the progress of its search.
struct SearchedColumn {
  const TableColumn* column;
  std::map<double, CurvePoint> points;
  CrossingProgress progress;
};

std::vector<SearchedColumn> searched_columns(const CrossingRule& search, const ResultTable& table,
                                             const std::vector<TableColumn>& columns) {
  const CurveReader reader(search, table);
  std::vector<SearchedColumn> searched;
  for (const TableColumn& column : columns) {
    if (!search.searches(column.arm)) continue;
    const TableColumn* against = nullptr;
    for (const TableColumn& other : columns)
      if (!search.against.empty() && other.arm == search.against && other.at == column.at) against = &other;
    static const std::vector<const ResultRow*> none;
    SearchedColumn own{&column, {}, {}};
    for (const auto& [value, rows] : column.rows) {
      const std::vector<const ResultRow*>* others = nullptr;
      if (!search.against.empty()) {
        others = &none;
        if (against)
          if (const auto found = against->rows.find(value); found != against->rows.end())
            others = &found->second;
      }
      own.points.emplace(value, reader.point(value, rows, others));
    }
    own.progress = bisect(
        search.low, search.high, [&](double low, double high) { return search.middle(low, high); },
        [&](double value) {
          const auto found = own.points.find(value);
          return found == own.points.end() ? nullptr : &found->second;
        });
    searched.push_back(std::move(own));
  }
  return searched;
}

std::string counted_seeds(const char* what, double value, const CurvePoint& point) {
  const auto with = std::count_if(point.seeds.begin(), point.seeds.end(),
                                  [](const std::optional<double>& seed) { return seed.has_value(); });
  return fmt::format("at {:g} {} of {} seeds {}", value, point.seeds.size() - static_cast<std::size_t>(with),
                     point.seeds.size(), what);
}

/// The note for the reader about a column.
std::string column_note(const CrossingRule& search, const CrossingColumn& column, const SearchedColumn& own) {
  std::vector<std::string> parts;
  const std::string level = search.level ? fmt::format("{:g}", *search.level) : search.against;
  switch (column.progress.state) {
    case CrossingState::above:
    case CrossingState::below:
      parts.push_back(fmt::format("does not cross: both ends of [{:g}, {:g}] lie {} {}", search.low,
                                  search.high,
                                  column.progress.state == CrossingState::above ? "above" : "below", level));
      break;
    case CrossingState::open:
      parts.push_back(
          fmt::format("not there yet: between {:g} and {:g}", column.progress.low, column.progress.high));
      break;
    case CrossingState::no_value:
      for (const double value : column.progress.visited)
        if (const CurvePoint& point = own.points.at(value); !curve_mean(point))
          parts.push_back("no mean: " + counted_seeds("have no value", value, point));
      break;
    case CrossingState::crosses:
      break;
  }
  if (column.left_out > 0 && column.progress.state != CrossingState::no_value)
    parts.push_back(fmt::format("cells without a value, left out of means: {}", column.left_out));
  if (column.sign_changes > 1) parts.push_back(fmt::format("the means cross {} times", column.sign_changes));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

std::string to_string(CrossingState state) {
  switch (state) {
    case CrossingState::crosses:
      return "crosses";
    case CrossingState::above:
      return "above";
    case CrossingState::below:
      return "below";
    case CrossingState::no_value:
      return "no value";
    case CrossingState::open:
      break;
  }
  return "open";
}

std::vector<CrossingColumn> crossing_columns(const CrossingRule& search, const ResultTable& table) {
  const std::vector<TableColumn> columns = table_columns(search, table);
  std::vector<CrossingColumn> found;
  for (const SearchedColumn& own : searched_columns(search, table, columns)) {
    CrossingColumn column{own.column->arm, own.column->at, own.progress, {}, {}, {}, 0, 0, ""};
    std::vector<CurvePoint> curve;
    std::size_t left = 0;
    for (const auto& [value, point] : own.points) {
      const std::vector<double>& visited = own.progress.visited;
      if (!point.is_complete || std::find(visited.begin(), visited.end(), value) == visited.end()) continue;
      column.left_out += static_cast<int>(std::count(point.seeds.begin(), point.seeds.end(), std::nullopt));
      if (!curve_mean(point)) continue;
      if (value <= own.progress.low) left = curve.size();
      curve.push_back(point);
    }
    column.sign_changes = sign_changes(curve);
    if (own.progress.state == CrossingState::crosses) {
      const CrossingEstimate estimate = estimate_crossing(curve, left);
      column.estimate = search.unscaled(estimate.x);
      if (estimate.low) column.low = search.unscaled(*estimate.low);
      if (estimate.high) column.high = search.unscaled(*estimate.high);
    }
    column.note = column_note(search, column, own);
    found.push_back(std::move(column));
  }
  return found;
}

std::vector<std::vector<double>> placed_values(const CrossingRule& search, const ResultTable& table) {
  const std::vector<TableColumn> columns = table_columns(search, table);
  const std::vector<SearchedColumn> searched = searched_columns(search, table, columns);
  std::vector<std::vector<double>> placed;
  for (const TableColumn& column : columns) {
    const auto own = std::find_if(searched.begin(), searched.end(), [&](const SearchedColumn& candidate) {
      return candidate.column->at == column.at && (!search.arm.empty() || candidate.column == &column);
    });
    placed.push_back(own->progress.visited);
    std::sort(placed.back().begin(), placed.back().end());
  }
  return placed;
}

std::size_t most_further_cells(const CrossingRule& search, const ResultTable& table) {
  const std::vector<TableColumn> columns = table_columns(search, table);
  std::size_t cells = 0;
  for (const SearchedColumn& own : searched_columns(search, table, columns)) {
    const CrossingProgress& progress = own.progress;
    if (progress.state != CrossingState::open) continue;
    // If the table contains the last visited point, it is already counted.
    int points = search.most_within(progress.low, progress.high);
    points -= progress.visited.size() > 2 && own.points.contains(progress.visited.back()) ? 1 : 0;
    for (const TableColumn& column : columns) {
      if (column.at == own.column->at && (!search.arm.empty() || &column == own.column))
        cells += static_cast<std::size_t>(points) * column.rows.begin()->second.size();
    }
  }
  return cells;
}

namespace {

/// A line connects the crossings of an arm; a `series` path gives one line per value. Each crossing has its
/// 95 % interval, cut at the search range if it is open. Swept paths that x, the series and `where` do not
/// fix become panels. A search without a crossing leaves a gap, and the caption names it.
struct CrossingFigureOptions : FigureCommon, AxisLabels {
  std::string x, series = "arm";
  std::optional<std::string> y;
  std::vector<std::string> power_law;  ///< swept paths; a product of their powers is fitted
  std::vector<std::string> laws;       ///< expressions that should be proportional to the crossings
  Scale x_scale = Scale::linear, y_scale = Scale::linear;
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    fields.required().add(
        "x", x, "a swept path, or an expression of swept paths (\"model.experts / data.clusters\")");
    fields.add("y", y, "an expression of swept paths, among them the searched one (default: that one)");
    fields.optional().add("series", series,
                          "a swept path whose values are lines of their own (default: \"arm\")");
    fields.optional().add_list(
        "power_law", power_law, 1,
        "swept paths to whose powers the crossings are fitted; the caption has the exponents, with 95 % "
        "intervals");
    fields.optional().add_list(
        "laws", laws, 1,
        "expressions of swept paths that crossings may be proportional to (\"data.clusters * log ( "
        "data.clusters )\"); the caption has what is left in the logarithm");
    fields.add("x_scale", x_scale, {"linear", "log"}, "scale of the x axis");
    fields.add("y_scale", y_scale, {"linear", "log"}, "scale of the y axis");
    AxisLabels::bind(fields);
  }
};

constexpr const char* kNotPositive = "none, since a value is not positive.";

/// The value of an expression at a column, with the searched path set to `crossing`.
std::optional<double> value_of_column(const PlottedValue& text, const CrossingColumn& column,
                                      const CrossingRule& search, double crossing) {
  ResultRow row;
  row.point = column.at;
  row.point.emplace_back(search.path, SweepValue(crossing));
  const std::optional<Interval> value = text.of(row, {});
  return value ? std::optional(value->low) : std::nullopt;
}

/// The values (n) of an expression at the crossings.
Vector values_at(const std::string& text, const std::vector<const CrossingColumn*>& found,
                 const CrossingRule& search, const ResultTable& table) {
  const PlottedValue value(text, table);
  Vector values(static_cast<Eigen::Index>(found.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    values(static_cast<Eigen::Index>(i)) =
        value_of_column(value, *found[i], search, *found[i]->estimate).value_or(0);
  return values;
}

std::string power_law_text(const std::vector<std::string>& paths,
                           const std::vector<const CrossingColumn*>& found, const CrossingRule& search,
                           const ResultTable& table, const DisplayNames& names) {
  const Vector y = values_at(search.path, found, search, table);
  Matrix x(y.size(), static_cast<Eigen::Index>(paths.size()));
  for (std::size_t j = 0; j < paths.size(); ++j)
    x.col(static_cast<Eigen::Index>(j)) = values_at(paths[j], found, search, table);
  if ((x.array() <= 0).any() || (y.array() <= 0).any()) return kNotPositive;
  const std::optional<PowerLaw> law = fit_power_law(x, y);
  if (!law) return fmt::format("none, of too few crossings ({}).", found.size());
  std::vector<std::string> exponents;
  for (std::size_t j = 0; j < paths.size(); ++j)
    exponents.push_back(fmt::format("{:.2f} [{:.2f}, {:.2f}] of {}", law->exponents[j], law->intervals[j].low,
                                    law->intervals[j].high, names.axis(paths[j])));
  const Interval& held = kCrossingCoverage.exponent;
  return fmt::format(
      "constant {:.3g}, exponent {}, by least squares of logarithms over {} crossings. It leaves a standard "
      "deviation of {:.2f} in the logarithm of {}. Such intervals held the true exponent in {:.0f} to {:.0f} "
      "% of runs.",
      law->constant, fmt::join(exponents, ", exponent "), found.size(), law->deviation,
      names.axis(search.path), held.low, held.high);
}

std::string laws_text(const std::vector<std::string>& laws, const std::vector<const CrossingColumn*>& found,
                      const CrossingRule& search, const ResultTable& table, const DisplayNames& names) {
  const Vector y = values_at(search.path, found, search, table);
  std::vector<std::string> parts;
  for (const std::string& law : laws) {
    const Vector x = values_at(law, found, search, table);
    if ((x.array() <= 0).any() || (y.array() <= 0).any()) return kNotPositive;
    const std::optional<Proportion> fit = fit_proportion(x, y);
    if (!fit) return fmt::format("none, of too few crossings ({}).", found.size());
    parts.push_back(fmt::format("{} = {:.3g} · {} leaves {}{:.2f}", names.axis(search.path), fit->constant,
                                names.axis(law), parts.empty() ? "a standard deviation of " : "",
                                fit->deviation));
  }
  return fmt::format("{} in the logarithm.", fmt::join(parts, "; "));
}

/// Describes how the crossings of one arm scale, with sentences about power_law and laws, and the standard
/// deviation that each leaves in the logarithm. `of`: the arm as " of plain", or empty. Throws InvalidOption
/// for an invalid expression.
std::string crossing_laws(const CrossingFigureOptions& options,
                          const std::vector<const CrossingColumn*>& found, const std::string& of,
                          const CrossingRule& search, const ResultTable& table, const DisplayNames& names) {
  std::string text;
  if (!options.power_law.empty())
    text +=
        fmt::format(" Power law{}: {}", of, power_law_text(options.power_law, found, search, table, names));
  if (!options.laws.empty())
    text += fmt::format(" Laws{}: {}", of, laws_text(options.laws, found, search, table, names));
  return text;
}

void check_crossing_figure(const FigureReferences& references, const CrossingFigureOptions& options,
                           const std::string& path) {
  const std::string& searched = references.table().searched_path;
  if (searched.empty()) throw UserError(path + ".kind", "needs a sweep that searches a crossing");
  const std::string x_path = path + ".x", series_path = path + ".series";
  check_plotted_path(references, options.x, "", x_path);
  const auto check_other = [&](const std::string& name, const std::string& text, const std::string& at) {
    if (name == searched) throw UserError(at, "got '" + text + "', needs another path than the searched one");
  };
  const auto check_other_numbers = [&](const std::string& text, const std::string& at) {
    for (const std::string& name : Expression::parse(text, at).names()) {
      references.check_number(name, at);
      check_other(name, text, at);
    }
  };
  check_other_numbers(options.x, x_path);
  if (options.y) check_plotted_path(references, *options.y, "", path + ".y");
  references.check_swept(options.series, "arm", series_path);
  check_other(options.series, options.series, series_path);
  for (const std::string& law : options.power_law) check_other_numbers(law, path + ".power_law");
  for (const std::string& law : options.laws) check_other_numbers(law, path + ".laws");
  references.check_where(options.where, path);
  if (coordinate_of(options.where, searched))
    throw UserError(path + ".where." + searched, "is searched, and has no value to choose");
  checked_arms(references, options, path);
}

/// The shown crossings of an arm.
std::vector<const CrossingColumn*> found_by(const std::vector<const CrossingColumn*>& shown,
                                            const std::string& arm) {
  std::vector<const CrossingColumn*> found;
  std::copy_if(shown.begin(), shown.end(), std::back_inserter(found),
               [&](const CrossingColumn* column) { return column->arm == arm && column->estimate; });
  return found;
}

FigurePoint crossing_point(const CrossingColumn& column, const CrossingRule& search, const PlottedValue& x,
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

std::string crossing_caption(const std::string& title, const FigureSource& source, const CrossingRule& search,
                             const std::vector<const CrossingColumn*>& shown, const DisplayNames& names) {
  int seeds = 0;
  for (const ResultRow& row : source.table.rows) seeds = std::max(seeds, is_imported(row) ? 0 : row.seed + 1);
  std::string text = scenario_sentences(title, source);
  text += fmt::format(
      "Where the mean over {} seeds of {} crosses {}, by bisection", seeds, names.legend(search.metric),
      search.level ? fmt::format("{:g}", *search.level) : "the mean of " + names.arm(search.against));
  text +=
      seeds > 1
          ? "; band: 95 % interval, the values at which a t-test cannot distinguish the mean from the level."
          : ".";
  const auto is_open = [](const CrossingColumn* column) {
    return column->estimate && (!column->low || !column->high);
  };
  if (seeds > 1 && std::any_of(shown.begin(), shown.end(), is_open))
    text += " Intervals that are open end at the range of the search.";
  for (const CrossingColumn* column : shown) {
    if (column->estimate) continue;
    const std::string at = names.point(column->at);
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

/// A line per arm and series value. Panels separate the other open paths.
std::vector<FigurePanel> crossing_panels(const CrossingFigureOptions& options, const FigureSource& source,
                                         const CrossingRule& search,
                                         const std::vector<const CrossingColumn*>& shown,
                                         const std::vector<std::string>& arms, const DisplayNames& names) {
  const PlottedValue x(options.x, source.table), y(options.y.value_or(search.path), source.table);
  const std::string& series = options.series;
  const std::vector<std::string> apart =
      facet_paths({options.x, series, options.where, options.arms}, source.table, search.path);
  const bool is_arm_told = series == "arm" || arms.size() > 1;
  std::vector<std::string> facets;
  std::vector<NamedLine> lines;
  for (const CrossingColumn* const column : shown) {
    SweepPoint facet = column->at;
    std::erase_if(facet, [&](const auto& coordinate) {
      return std::find(apart.begin(), apart.end(), coordinate.first) == apart.end();
    });
    const SweepValue* const value = series == "arm" ? nullptr : coordinate_of(column->at, series);
    const NamedLine own{names.point(facet),
                        is_arm_told ? shown_arm(names, source.table, column->arm) : "",
                        value ? names.value(series, *value) : "",
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

Figure build_crossing_figure(const CrossingFigureOptions& options, const FigureSource& source) {
  const std::optional<CrossingRule>& search = source.run.crossing;
  if (!search) throw UserError("figures." + options.id, "the plan searches no crossing");
  const DisplayNames names(source.run);
  const std::vector<std::string> arms = own_shown_arms(options.arms, source.table);

  Figure figure;
  figure.id = options.id;
  figure.x_log = options.x_scale == Scale::log;
  figure.y_log = options.y_scale == Scale::log;
  figure.x_label = options.x_label.value_or(names.axis(options.x));
  figure.y_label = options.y_label.value_or(names.axis(options.y.value_or(search->path)));
  const std::vector<CrossingColumn> columns = crossing_columns(*search, source.table);
  const std::vector<const CrossingColumn*> shown = shown_columns(columns, options.where, arms);
  figure.panels = crossing_panels(options, source, *search, shown, arms, names);
  figure.title =
      figure_title(options, source,
                   fmt::format("where {} crosses, over {}", names.legend(search->metric), figure.x_label));
  figure.caption = crossing_caption(figure.title, source, *search, shown, names);
  for (const std::string& arm : arms)
    figure.caption +=
        crossing_laws(options, found_by(shown, arm), arms.size() > 1 ? " of " + names.arm(arm) : "", *search,
                      source.table, names);
  figure.caption += source.footnote;
  return figure;
}

}  // namespace

FigureKind crossing_kind() {
  return figure_kind(
      "crossing", "where a searched metric crosses its level, over another swept path: a line for each arm",
      check_crossing_figure, build_crossing_figure);
}

}  // namespace moelab
