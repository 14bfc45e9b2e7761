#include "app/figures/crossing_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/stats/row_index.h"
#include "app/figures/plotted_value.h"
#include "app/figures/shown_arms.h"

namespace moelab {
namespace {

/// The rows of an arm at a point of the other paths, by the searched value.
struct TableColumn {
  std::string arm;
  SweepPoint at;
  std::map<double, std::vector<const ResultRow*>> rows;
};

std::vector<TableColumn> table_columns(const CrossingSearch& search, const ResultTable& table) {
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

/// The values of a search's arm, and of the one that it is held against.
class CurveReader {
 public:
  CurveReader(const CrossingSearch& search, const ResultTable& table)
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
    // A metric that is positive by definition may underflow.
    return value->low > 0 ? std::optional(std::log(value->low)) : std::nullopt;
  }

  const CrossingSearch& search_;
  PlottedValue metric_;
};

/// The curves of all searched columns, and how far each search is.
struct SearchedColumn {
  const TableColumn* column;
  std::map<double, CurvePoint> points;
  CrossingProgress progress;
};

std::vector<SearchedColumn> searched_columns(const CrossingSearch& search, const ResultTable& table,
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

/// What has to be said of a column.
std::string column_note(const CrossingSearch& search, const CrossingColumn& column,
                        const SearchedColumn& own) {
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

std::vector<CrossingColumn> crossing_columns(const CrossingSearch& search, const ResultTable& table) {
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

std::vector<std::vector<Json>> placed_values(const CrossingSearch& search, const ResultTable& table) {
  const std::vector<TableColumn> columns = table_columns(search, table);
  const std::vector<SearchedColumn> searched = searched_columns(search, table, columns);
  std::vector<std::vector<Json>> placed;
  for (const TableColumn& column : columns) {
    const auto own = std::find_if(searched.begin(), searched.end(), [&](const SearchedColumn& candidate) {
      return candidate.column->at == column.at && (!search.arm.empty() || candidate.column == &column);
    });
    std::vector<double> values = own->progress.visited;
    std::sort(values.begin(), values.end());
    placed.emplace_back();
    for (const double value : values) placed.back().push_back(CrossingSearch::value(value));
  }
  return placed;
}

std::size_t most_further_cells(const CrossingSearch& search, const ResultTable& table) {
  const std::vector<TableColumn> columns = table_columns(search, table);
  std::size_t cells = 0;
  for (const SearchedColumn& own : searched_columns(search, table, columns)) {
    const CrossingProgress& progress = own.progress;
    if (progress.state != CrossingState::open) continue;
    // The last visited is counted already where the table has it.
    int points = search.most_within(progress.low, progress.high);
    points -= progress.visited.size() > 2 && own.points.contains(progress.visited.back()) ? 1 : 0;
    for (const TableColumn& column : columns) {
      if (column.at == own.column->at && (!search.arm.empty() || &column == own.column))
        cells += static_cast<std::size_t>(points) * column.rows.begin()->second.size();
    }
  }
  return cells;
}

}  // namespace moelab
