#include "app/figures/line_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/figures/figure_kind.h"
#include "app/figures/shown_arms.h"
#include "app/scenario/references.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

/// The row's coordinates on these paths.
SweepPoint coordinates_on(const ResultRow& row, const std::vector<std::string>& paths) {
  SweepPoint point;
  for (const std::string& path : paths)
    if (const SweepValue* const value = row.coordinate(path)) point.emplace_back(path, *value);
  return point;
}

/// Whether rows that agree on x and on `known` agree on `path`.
bool is_settled(const std::vector<const ResultRow*>& rows, const PlottedValue& x,
                const std::vector<std::string>& known, const std::string& path) {
  std::map<std::string, std::string> seen;
  for (const ResultRow* row : rows) {
    const SweepValue* const value = row->coordinate(path);
    const std::string text = value ? value->canonical() : "";
    // Of a lone path the value itself: it need not be a number.
    const std::optional<Interval> number = x.is_name() ? std::nullopt : x.of(*row, {});
    const std::string place =
        point_json(coordinates_on(*row, known)).dump() + (number ? fmt::format(" {}", number->low) : "");
    if (seen.try_emplace(place, text).first->second != text) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> facet_paths(const Json& figure, const ResultTable& table,
                                     const std::string& searched) {
  const SweepPoint where = where_of(figure);
  std::vector<const ResultRow*> rows;
  for (const ResultRow& row : table.rows)
    if (row.is_at(where)) rows.push_back(&row);
  const PlottedValue x(figure.at("x").get<std::string>(), table);
  if (x.is_measured()) return {};
  std::vector<std::string> known = {x.text(), figure.value("series", "arm")}, found;
  for (const std::string& path : table.sweep_paths) {
    if (path == searched || is_settled(rows, x, known, path)) continue;
    known.push_back(path);
    found.push_back(path);
  }
  return found;
}

std::vector<SweepPoint> line_facets(const Json& figure, const ResultTable& table) {
  const std::vector<std::string> paths = facet_paths(figure, table);
  const SweepPoint where = where_of(figure);
  std::vector<SweepPoint> facets;
  for (const ResultRow& row : table.rows) {
    if (!row.is_at(where)) continue;
    SweepPoint facet = coordinates_on(row, paths);
    if (std::find(facets.begin(), facets.end(), facet) == facets.end()) facets.push_back(std::move(facet));
  }
  return facets;
}

std::vector<LineGroup> line_groups(const Json& figure, const ResultTable& table) {
  const std::string series = figure.value("series", "arm");
  const std::vector<std::string> paths = facet_paths(figure, table);
  const SweepPoint where = where_of(figure);
  std::vector<LineGroup> groups;
  for (const std::string& arm : shown_arms(figure, table))
    for (const ResultRow& row : table.rows) {
      if (row.arm != arm || !row.is_at(where)) continue;
      const SweepValue* const found = series == "arm" ? nullptr : row.coordinate(series);
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
  for (const SweepValue& value : values_) categories_.push_back(names.bare_value(text, value_text(value)));
}

std::string Horizontal::point_of(const ResultRow& row) const {
  return is_measured() ? row.arm + point_json(row.point).dump() : "";
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

}  // namespace moelab
