#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "plots/figure.h"
#include "plots/kinds/figure_kind.h"
#include "plots/kinds/lines.h"

namespace moelab {
namespace {

/// The row's coordinates on these paths.
SweepPoint coordinates_on(const ResultRow& row, const std::vector<std::string>& paths) {
  SweepPoint point;
  for (const std::string& path : paths)
    if (const SweepValue* const value = row.coordinate(path)) point.emplace_back(path, *value);
  return point;
}

/// Whether rows with equal x and equal `known` values always have the same value of `path`.
bool is_settled(const std::vector<const ResultRow*>& rows, const PlottedValue& x,
                const std::vector<std::string>& known, const std::string& path) {
  std::map<std::string, std::string> seen;
  for (const ResultRow* row : rows) {
    const SweepValue* const value = row->coordinate(path);
    const std::string text = value ? value->canonical() : "";
    // A single path may be non-numeric, so `known` compares its value.
    const std::optional<Interval> number = x.is_name() ? std::nullopt : x.of(*row, {});
    const std::string place =
        point_key(coordinates_on(*row, known)) + (number ? fmt::format(" {}", number->low) : "");
    if (seen.try_emplace(place, text).first->second != text) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> facet_paths(const LinePlaces& places, const ResultTable& table,
                                     const std::string& searched) {
  std::vector<const ResultRow*> rows;
  for (const ResultRow& row : table.rows)
    if (row.is_at(places.where)) rows.push_back(&row);
  const PlottedValue x(places.x, table);
  if (x.is_measured()) return {};
  std::vector<std::string> known = {x.text(), places.series}, found;
  for (const std::string& path : table.sweep_paths) {
    if (path == searched || is_settled(rows, x, known, path)) continue;
    known.push_back(path);
    found.push_back(path);
  }
  return found;
}

std::vector<SweepPoint> line_facets(const LinePlaces& places, const ResultTable& table) {
  const std::vector<std::string> paths = facet_paths(places, table);
  std::vector<SweepPoint> facets;
  for (const ResultRow& row : table.rows) {
    if (!row.is_at(places.where)) continue;
    SweepPoint facet = coordinates_on(row, paths);
    if (std::find(facets.begin(), facets.end(), facet) == facets.end()) facets.push_back(std::move(facet));
  }
  return facets;
}

std::vector<LineGroup> line_groups(const LinePlaces& places, const ResultTable& table) {
  const std::vector<std::string> paths = facet_paths(places, table);
  std::vector<LineGroup> groups;
  for (const std::string& arm : shown_arms(places.arms, table))
    for (const ResultRow& row : table.rows) {
      if (row.arm != arm || !row.is_at(places.where)) continue;
      const SweepValue* const found = places.series == "arm" ? nullptr : row.coordinate(places.series);
      const std::optional<SweepValue> value = found ? std::optional(*found) : std::nullopt;
      SweepPoint facet = coordinates_on(row, paths);
      auto group = std::find_if(groups.begin(), groups.end(), [&](const LineGroup& known) {
        return known.arm == arm && known.value == value && known.facet == facet;
      });
      if (group == groups.end())
        group = groups.insert(groups.end(), LineGroup{arm, value, std::move(facet), {}});
      group->rows.push_back(&row);
    }
  return groups;
}

Horizontal::Horizontal(const std::string& text, const std::vector<LineGroup>& groups,
                       const ResultTable& table, const DisplayNames& names)
    : x_(text, table), is_measured_(x_.is_measured()) {
  if (is_measured()) add_means(groups);
  for (const LineGroup& group : groups)
    for (const ResultRow* row : group.rows)
      if (const SweepValue* value = row->coordinate(text);
          value && std::find(values_.begin(), values_.end(), *value) == values_.end())
        values_.push_back(*value);
  if (std::all_of(values_.begin(), values_.end(),
                  [](const SweepValue& value) { return value.number().has_value(); }))
    return;
  for (const SweepValue& value : values_) categories_.push_back(names.bare_value(text, value));
}

std::string Horizontal::point_of(const ResultRow& row) const {
  return is_measured() ? row.arm + point_key(row.point) : "";
}

void Horizontal::add_means(const std::vector<LineGroup>& groups) {
  std::map<std::string, std::vector<double>> seeds;
  for (const LineGroup& group : groups)
    for (const ResultRow* row : group.rows) {
      if (row->state != "done") continue;
      if (const std::optional<Interval> x = x_.of(*row, row->metrics))
        seeds[point_of(*row)].push_back(x_.is_positive() ? std::log(x->low) : x->low);
    }
  for (const auto& [point, values] : seeds) {
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    means_[point] = x_.is_positive() ? std::exp(mean) : mean;
  }
}

std::vector<std::pair<double, const MetricValues*>> Horizontal::places(const ResultRow& row) const {
  std::vector<std::pair<double, const MetricValues*>> found;
  if (x_.text() == "step") {
    for (const TraceEntry& entry : row.trace)
      found.emplace_back(static_cast<double>(entry.step), &entry.metrics);
  } else if (is_measured()) {
    if (const auto mean = means_.find(point_of(row)); mean != means_.end())
      found.emplace_back(mean->second, &row.metrics);
  } else if (!categories_.empty()) {
    const SweepValue* const value = row.coordinate(x_.text());
    if (value)
      found.emplace_back(
          static_cast<double>(std::find(values_.begin(), values_.end(), *value) - values_.begin()),
          &row.metrics);
  } else if (const std::optional<Interval> x = x_.of(row, {})) {
    found.emplace_back(x->low, &row.metrics);
  }
  return found;
}

namespace {

BandPoint point_of_seeds(double x, const std::vector<std::optional<Interval>>& observations,
                         const PlottedValue& value, bool is_sequential) {
  if (value.may_be_censored()) return median_point(x, observations, is_sequential);
  std::vector<std::optional<double>> seeds;
  for (const std::optional<Interval>& seed : observations)
    seeds.push_back(seed ? std::optional(seed->low) : std::nullopt);
  return band_point(x, std::move(seeds), value.is_positive(), is_sequential);
}

}  // namespace

std::vector<FigurePoint> line_points(const LineGroup& group, const Horizontal& horizontal,
                                     const PlottedValue& value, bool is_sequential, CensoredCount& count) {
  std::size_t seeds = 0;
  for (const ResultRow* row : group.rows) seeds = std::max(seeds, static_cast<std::size_t>(row->seed) + 1);
  std::map<std::pair<double, std::string>, std::vector<std::optional<Interval>>> observations;
  bool any_done = false, any_value = false;
  for (const ResultRow* row : group.rows)
    for (const auto& [x, metrics] : horizontal.places(*row)) {
      std::vector<std::optional<Interval>>& at_x =
          observations.try_emplace({x, horizontal.point_of(*row)}, seeds).first->second;
      if (row->state != "done") continue;
      any_done = true;
      const std::optional<Interval> observation = value.of(*row, *metrics);
      if (!observation) continue;
      any_value = true;
      ++count.all;
      count.censored += is_exact(*observation) ? 0 : 1;
      at_x[static_cast<std::size_t>(row->seed)] = observation;
    }
  std::vector<FigurePoint> points;
  if (any_done && !any_value) return points;
  for (const auto& [place, at_x] : observations) {
    const double x = place.first;
    BandPoint band = point_of_seeds(x, at_x, value, is_sequential);
    points.push_back({x, band.mean, band.low, band.high, std::move(band.seeds), band.is_open});
  }
  return points;
}

std::string statistic_text(const std::vector<ShownValue>& values, std::size_t seeds, bool is_sequential,
                           bool has_thin_lines) {
  // A kind of statistic in the figure: whether it occurs, and whether it has intervals.
  struct Statistic {
    std::string mean, interval;
    bool is_there = false, has_interval = false;
  };
  const char* const interval = is_sequential ? "confidence sequence" : "interval";
  std::array<Statistic, 3> statistics = {
      Statistic{"geometric mean", fmt::format("95 % {} of logarithms", interval)},
      Statistic{"mean", fmt::format("95 % {}", is_sequential ? interval : "Student-t interval")},
      Statistic{"median",
                fmt::format("95 % {} of {}", interval, is_sequential ? "signs" : "order statistics")}};
  for (const ShownValue& shown : values) {
    Statistic& own = statistics[shown.value.may_be_censored() ? 2 : shown.value.is_positive() ? 0 : 1];
    own.is_there = true;
    own.has_interval = own.has_interval || shown.has_interval;
  }
  std::vector<std::string> parts;
  for (const Statistic& own : statistics)
    if (own.is_there)
      parts.push_back(own.mean + ", " + (own.has_interval ? own.interval : "too few seeds for an interval"));
  return fmt::format("{}{} seeds: {}{}.", is_sequential ? "Up to " : "", seeds, fmt::join(parts, "; "),
                     has_thin_lines ? "; thin lines: single seeds" : "");
}

std::string censored_text(const CensoredCount& count) {
  if (count.censored == 0) return "";
  return fmt::format(
      " {} of {} seeds had not reached the target at their last step, which stands for them; where the "
      "median is among them its marker is open.",
      count.censored, count.all);
}

namespace {

constexpr std::size_t kMostLines = 6;

using Part = std::string NamedLine::*;
constexpr Part kParts[] = {&NamedLine::metric, &NamedLine::arm, &NamedLine::value};

/// The largest number of lines in a panel if each facet and `part` has a panel. A null `part` means facets
/// only.
std::size_t fullest_panel(const std::vector<NamedLine>& lines, Part part) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  std::size_t most = 0;
  for (const NamedLine& line : lines)
    if (!line.is_reference())
      most = std::max(most, ++counts[{line.facet, part == nullptr ? "" : line.*part}]);
  return most;
}

/// The part that divides lines into panels, in addition to facets; null for none.
Part part_of_panels(const std::vector<NamedLine>& lines) {
  if (fullest_panel(lines, nullptr) <= kMostLines) return nullptr;
  for (const Part part : kParts)
    // A panel with a single line shows no comparison.
    if (const std::size_t most = fullest_panel(lines, part); most > 1 && most <= kMostLines) return part;
  return nullptr;
}

std::string line_name(const NamedLine& line, Part told) {
  std::vector<std::string> parts;
  for (const Part part : {&NamedLine::arm, &NamedLine::value, &NamedLine::metric})
    if (part != told && !(line.*part).empty()) parts.push_back(line.*part);
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The length of the metric names' common beginning, up to the last common ", ". It leaves "" and "swapped"
/// of "test, evaluation" and "test, evaluation, swapped".
std::size_t shared_beginning(const std::vector<NamedLine>& lines) {
  std::optional<std::string> shared;  // with ", " appended
  for (const NamedLine& line : lines) {
    if (line.is_reference()) continue;
    const std::string name = line.metric + ", ";
    if (!shared) shared = name;
    std::size_t end = 0;
    for (std::size_t i = 0; i < std::min(name.size(), shared->size()) && name[i] == (*shared)[i]; ++i)
      if (name[i] == ' ' && i > 0 && name[i - 1] == ',') end = i + 1;
    shared->resize(end);
  }
  return shared.value_or("").size();
}

/// Removes the common beginning of the metrics if every name has other parts. The part `told` is in the
/// panel's title.
std::vector<NamedLine> shortened(std::vector<NamedLine> lines, Part told) {
  const auto needs_metric = [&](const NamedLine& line) {
    const bool has_arm = told != &NamedLine::arm && !line.arm.empty();
    const bool has_value = told != &NamedLine::value && !line.value.empty();
    return !line.is_reference() && !has_arm && !has_value;
  };
  if (std::any_of(lines.begin(), lines.end(), needs_metric)) return lines;
  const std::size_t shared = shared_beginning(lines);
  for (NamedLine& line : lines)
    if (!line.is_reference()) line.metric.erase(0, std::min(shared, line.metric.size()));
  return lines;
}

std::string joined_name(const std::string& facet, const std::string& part) {
  return facet + (facet.empty() || part.empty() ? "" : ", ") + part;
}

}  // namespace

std::string full_name(const NamedLine& line) {
  return joined_name(line.facet, line_name(line, nullptr));
}

std::vector<FigurePanel> line_panels(const std::vector<std::string>& facets,
                                     const std::vector<NamedLine>& named) {
  const Part part = part_of_panels(named);
  const std::vector<NamedLine> lines = part == &NamedLine::metric ? named : shortened(named, part);
  std::vector<FigurePanel> panels;
  for (const std::string& facet : facets) {
    std::vector<std::string> values;  // values of the part, in the order of the lines
    std::map<std::string, std::vector<const NamedLine*>> own;
    for (const NamedLine& line : lines) {
      if (line.facet != facet || line.is_reference()) continue;
      const std::string value = part == nullptr ? "" : line.*part;
      if (own[value].empty()) values.push_back(value);
      own[value].push_back(&line);
    }
    for (const std::string& value : values) {
      const std::vector<const NamedLine*>& shown = own[value];
      const std::size_t count = (shown.size() + kMostLines - 1) / kMostLines;
      for (std::size_t panel = 0; panel < count; ++panel) {
        FigurePanel& filled = panels.emplace_back();
        std::vector<std::string> names;
        const auto add = [&](const NamedLine& line) {
          filled.series.push_back(line.series);
          filled.series.back().name = line_name(line, part);
        };
        for (std::size_t i = 0; i < shown.size(); ++i)
          if (i * count / shown.size() == panel) {
            add(*shown[i]);
            names.push_back(filled.series.back().name);
          }
        const bool is_of_metric = part == &NamedLine::metric && !shown.front()->heading.empty();
        const std::string told = is_of_metric ? shown.front()->heading
                                 : count == 1 ? value
                                              : fmt::format("{}", fmt::join(names, ", "));
        // The metric comes first, because panels of different metrics have different scales.
        filled.name = part == &NamedLine::metric ? joined_name(told, facet) : joined_name(facet, told);
        for (const NamedLine& line : lines)
          if (line.is_reference() && line.facet == facet &&
              (part != &NamedLine::value || line.value == value))
            add(line);
      }
    }
  }
  if (panels.empty()) panels.emplace_back();
  return panels;
}

}  // namespace moelab
