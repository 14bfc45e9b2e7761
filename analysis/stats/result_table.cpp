#include "analysis/stats/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace moelab {

const SweepValue* coordinate_of(const SweepPoint& point, const std::string& path) {
  const auto found = std::find_if(point.begin(), point.end(), [&](const auto& c) { return c.first == path; });
  return found == point.end() ? nullptr : &found->second;
}

bool has_coordinates(const SweepPoint& point, const SweepPoint& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& coordinate) {
    return std::find(point.begin(), point.end(), coordinate) != point.end();
  });
}

std::string point_text(const SweepPoint& point) {
  std::string text;
  for (const auto& [path, value] : point)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", path, value.text());
  return text;
}

std::string value_text(const SweepValue& value) {
  const auto json = nlohmann::json::parse(value.text());
  return json.is_string() ? json.get<std::string>() : value.text();
}

bool ResultTable::sweeps(const std::string& arm, const std::string& path) const {
  const auto of_arm = unswept.find(arm);
  return of_arm == unswept.end() ||
         std::find(of_arm->second.begin(), of_arm->second.end(), path) == of_arm->second.end();
}

std::size_t ResultTable::cell_count() const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const ResultRow& row) { return !row.is_copy; }));
}

void repeat_unswept(ResultTable& table) {
  const auto lacks = [&](const ResultRow& row) { return row.point.size() < table.sweep_paths.size(); };
  if (std::none_of(table.rows.begin(), table.rows.end(), lacks)) return;
  for (std::size_t place = 0; place < table.sweep_paths.size(); ++place) {
    const std::string& path = table.sweep_paths[place];
    std::vector<SweepValue> values;
    for (const ResultRow& row : table.rows) {
      const SweepValue* const value = row.coordinate(path);
      if (value && std::find(values.begin(), values.end(), *value) == values.end()) values.push_back(*value);
    }
    if (values.empty()) continue;
    // Earlier paths are complete, so a row's first `place` coordinates are those before this path.
    const auto same_start = [&](const ResultRow& one, const ResultRow& other) {
      return one.arm == other.arm &&
             std::equal(one.point.begin(), one.point.begin() + std::ptrdiff_t(place), other.point.begin());
    };
    std::vector<ResultRow> rows;
    for (std::size_t begin = 0; begin < table.rows.size();) {
      std::size_t end = begin + 1;
      if (table.rows[begin].coordinate(path)) {
        rows.push_back(std::move(table.rows[begin]));
        begin = end;
        continue;
      }
      std::vector<std::string>& unswept = table.unswept[table.rows[begin].arm];
      if (std::find(unswept.begin(), unswept.end(), path) == unswept.end()) unswept.push_back(path);
      while (end < table.rows.size() && same_start(table.rows[begin], table.rows[end])) ++end;
      for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t row = begin; row < end; ++row) {
          rows.push_back(table.rows[row]);
          rows.back().point.emplace(rows.back().point.begin() + std::ptrdiff_t(place), path, values[i]);
          rows.back().is_copy |= i > 0;
        }
      }
      begin = end;
    }
    table.rows = std::move(rows);
  }
}

std::string censored_name(const std::string& metric) {
  const std::size_t dot = metric.find('.');
  const std::string name = metric.substr(0, dot) + "_censored";
  return dot == std::string::npos ? name : name + metric.substr(dot);
}

std::optional<Interval> observed(const ResultRow& row, const MetricValues& metrics,
                                 const std::string& metric) {
  if (const auto found = metrics.find(metric); found != metrics.end()) {
    if (!std::isfinite(found->second)) return std::nullopt;
    return Interval{found->second, found->second};
  }
  const auto flag = metrics.find(censored_name(metric));
  if (flag == metrics.end() || flag->second != 1) return std::nullopt;
  const double last = row.trace.empty() ? 0 : static_cast<double>(row.trace.back().step);
  return Interval{last, std::numeric_limits<double>::infinity()};
}

namespace {

constexpr char kBetween = '\0';  // in no path, name or JSON text

std::string arm_key(const std::string& arm, const std::string& point) {
  return arm + kBetween + point;
}

double searched_number(const SweepValue& value) {
  return value.number().value_or(0);
}

/// Puts the points along the searched path together, in the order of the first point of each column.
void sort_columns(std::vector<SweepPoint>& points, const std::string& searched_path) {
  std::unordered_map<std::string, std::size_t> columns;
  std::vector<std::pair<std::pair<std::size_t, double>, SweepPoint>> keyed;
  for (SweepPoint& point : points) {
    SweepPoint others;
    double place = 0;
    for (const auto& coordinate : point) {
      if (coordinate.first == searched_path) {
        place = searched_number(coordinate.second);
      } else {
        others.push_back(coordinate);
      }
    }
    const std::size_t column = columns.try_emplace(point_key(others), columns.size()).first->second;
    keyed.emplace_back(std::pair(column, place), std::move(point));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = std::move(keyed[i].second);
}

}  // namespace

std::string point_key(const SweepPoint& point) {
  std::string key;
  for (const auto& [path, value] : point) {
    key += path;
    key += kBetween;
    key += value.canonical();
    key += kBetween;
  }
  return key;
}

RowIndex::RowIndex(const ResultTable& table) : table_(table) {
  std::vector<std::pair<int, const ResultRow*>>* rows = nullptr;
  const ResultRow* last = nullptr;
  for (const ResultRow& row : table.rows) {
    // Rows of an arm at a point are adjacent.
    if (last == nullptr || row.arm != last->arm || row.point != last->point) {
      std::string key = point_key(row.point);
      rows = &rows_[arm_key(row.arm, key)];
      if (known_points_.insert(std::move(key)).second) points_.push_back(row.point);
    }
    last = &row;
    rows->emplace_back(row.seed, &row);
    seeds_[row.arm].push_back(row.seed);
  }
  if (!table.searched_path.empty()) sort_columns(points_, table.searched_path);
  for (const SweepPoint& point : points_) {
    for (const auto& [name, value] : point) {
      SweptPath& path = paths_[name];
      std::vector<const SweepPoint*>& points = path.points[value.canonical()];
      if (points.empty()) path.values.push_back(value);
      points.push_back(&point);
    }
  }
  if (const auto searched = paths_.find(table.searched_path); searched != paths_.end()) {
    std::stable_sort(
        searched->second.values.begin(), searched->second.values.end(),
        [](const SweepValue& a, const SweepValue& b) { return searched_number(a) < searched_number(b); });
  }
  for (auto& [key, list] : rows_) {
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  for (auto& [arm, list] : seeds_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

SweepPoint RowIndex::followers(const std::string& path, const SweepValue& value) const {
  SweepPoint found;
  const auto own = paths_.find(path);
  // Each point of the other paths has its own searched values.
  if (own == paths_.end() || path == table_.searched_path) return found;
  for (const std::string& other : table_.sweep_paths) {
    if (other == path || other == table_.searched_path) continue;
    const auto has_one = [&](const auto& at_value) {
      const SweepValue* const first = coordinate_of(*at_value.second.front(), other);
      return std::all_of(at_value.second.begin(), at_value.second.end(), [&](const SweepPoint* point) {
        const SweepValue* const each = coordinate_of(*point, other);
        return first && each && *each == *first;
      });
    };
    const auto here = own->second.points.find(value.canonical());
    if (here == own->second.points.end() ||
        !std::all_of(own->second.points.begin(), own->second.points.end(), has_one))
      continue;
    found.emplace_back(other, *coordinate_of(*here->second.front(), other));
  }
  return found;
}

const std::vector<std::pair<int, const ResultRow*>>& RowIndex::rows(const std::string& arm,
                                                                    const SweepPoint& point) const {
  static const std::vector<std::pair<int, const ResultRow*>> none;
  const auto found = rows_.find(arm_key(arm, point_key(point)));
  return found == rows_.end() ? none : found->second;
}

std::vector<const SweepPoint*> RowIndex::points_at(const SweepPoint& wanted) const {
  std::vector<const SweepPoint*> matching;
  if (wanted.empty()) {
    for (const SweepPoint& point : points_) matching.push_back(&point);
    return matching;
  }
  const std::vector<const SweepPoint*>* fewest = nullptr;
  for (const auto& [name, value] : wanted) {
    const auto path = paths_.find(name);
    if (path == paths_.end()) return {};
    const auto found = path->second.points.find(value.canonical());
    if (found == path->second.points.end()) return {};
    if (!fewest || found->second.size() < fewest->size()) fewest = &found->second;
  }
  std::copy_if(fewest->begin(), fewest->end(), std::back_inserter(matching),
               [&](const SweepPoint* point) { return has_coordinates(*point, wanted); });
  return matching;
}

const std::vector<SweepValue>& RowIndex::values(const std::string& path) const {
  static const std::vector<SweepValue> none;
  const auto found = paths_.find(path);
  return found == paths_.end() ? none : found->second.values;
}

const std::vector<int>& RowIndex::seeds(const std::string& arm) const {
  static const std::vector<int> none;
  const auto found = seeds_.find(arm);
  return found == seeds_.end() ? none : found->second;
}

std::optional<double> curve_rmse(const std::vector<TraceEntry>& left, const std::vector<TraceEntry>& right,
                                 const std::string& metric) {
  if (left.empty() || left.size() != right.size()) return std::nullopt;
  double squares = 0;
  for (std::size_t t = 0; t < left.size(); ++t) {
    const auto one = left[t].metrics.find(metric), other = right[t].metrics.find(metric);
    if (left[t].step != right[t].step || one == left[t].metrics.end() || other == right[t].metrics.end())
      return std::nullopt;
    const double difference = one->second - other->second;
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(left.size()));
}

}  // namespace moelab
