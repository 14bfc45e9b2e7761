#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "plots/kinds/figure_kind.h"
#include "plots/kinds/lines.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Cells whose difference is at most this share of their values count as equal.
constexpr double kEqualCells = 1e-9;

/// A panel shows an arm at one value of each swept path that x, y and `where` leave open. A map cell is the
/// seed_estimate of the metric `value` over the finished seeds. With `at_least`, it is the share of seeds at
/// or above that value. Both have a 95 % interval. Columns and rows keep the order of the sweep.
struct HeatMapOptions : FigureCommon, AxisLabels {
  std::string x, y;
  std::string value;
  std::optional<double> at_least;
  std::optional<std::string> value_label;
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    fields.required().add("x", x, "a swept path");
    fields.required().add("y", y, "another swept path");
    fields.required().add(
        "value", value,
        "the metric that colours a cell, or an expression: its mean over seeds, geometric if positive");
    fields.add("at_least", at_least, any_number(),
               "colour the share of seeds whose value is at least this, instead");
    fields.add("value_label", value_label, "what the caption and the colour scale call the value");
    AxisLabels::bind(fields);
  }
  std::vector<std::string> metrics() const { return {value}; }
  /// The panels are the same as for lines over x with y as the series.
  LinePlaces places() const { return {x, y, where, arms}; }
};

/// The index of `value`. Adds the value if it is new.
std::size_t place_of(const SweepValue& value, std::vector<SweepValue>& values) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
  values.push_back(value);
  return values.size() - 1;
}

/// The estimate of one map cell from its seeds' values. `is_open` marks a censored median.
MeanEstimate cell_estimate(const std::vector<Interval>& observations, const std::optional<double>& at_least,
                           const PlottedValue& metric, bool is_sequential, bool& is_open) {
  std::vector<double> values;
  for (const Interval& observation : observations) values.push_back(observation.low);
  const int count = static_cast<int>(values.size());
  if (!at_least && metric.may_be_censored()) {
    const Median median = median_of(observations);
    is_open = median.is_open;
    return {median.value, count, {}};
  }
  if (!at_least) return seed_estimate(values, metric.is_positive(), is_sequential);
  const auto hits = static_cast<int>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value >= *at_least; }));
  return {static_cast<double>(hits) / count, count, binomial_interval(hits, count)};
}

/// Caption text that says where the intervals are shown. Empty without intervals, as for medians.
std::string interval_text(const HeatMap& map, bool of_logarithms, bool is_share) {
  const bool has_any = std::any_of(map.panels.begin(), map.panels.end(), [](const HeatMapPanel& panel) {
    return std::any_of(panel.intervals.begin(), panel.intervals.end(),
                       [](const auto& interval) { return interval.has_value(); });
  });
  if (!has_any) return "";
  const char* const scale = of_logarithms ? " of logarithms" : "";
  if (!HeatMapLayout(map).has_intervals) return fmt::format("; 95 % intervals{} in the CSV", scale);
  if (of_logarithms || is_share) return fmt::format(", with its 95 % interval{}", scale);
  return " ± half of its 95 % interval";
}

/// Caption text about unreached targets; empty if all targets were reached.
std::string censored_cells_text(const CensoredCount& count, bool is_share) {
  if (count.censored == 0) return "";
  return fmt::format(
      " {} of {} seeds had not reached the target at their last step, which stands for them{}.",
      count.censored, count.all, is_share ? "" : "; \">\": the median is among them, so above the number");
}

/// A panel: an arm at one value of each swept path that the axes and `where` do not fix.
struct MapPlace {
  std::string arm;
  SweepPoint facet;
};

std::string place_text(const MapPlace& place, const std::string& arm, bool of_arm,
                       const DisplayNames& names) {
  std::vector<std::string> parts;
  if (of_arm || place.facet.empty()) parts.push_back(arm);
  if (!place.facet.empty()) parts.push_back(names.point(place.facet));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void check_heat_map(const FigureReferences& references, const HeatMapOptions& options,
                    const std::string& path) {
  const std::string &x = options.x, &y = options.y;
  references.check_swept(x, "", path + ".x");
  references.check_swept(y, "", path + ".y");
  if (x == y) throw UserError(path + ".y", "is the x axis already");
  const std::vector<std::string> arms = checked_arms(references, options, path);
  for (const std::string& arm : arms) check_plotted_value(references, arm, options.value, path + ".value");
  references.check_where(options.where, path);
  const std::string& searched = references.table().searched_path;
  if (!searched.empty() && x != searched && y != searched && !coordinate_of(options.where, searched))
    throw UserError(path + ".where",
                    fmt::format("leaves a panel for each value that the search along {0} places; needs {0} "
                                "as x, as y or in where, or a figure of kind crossing",
                                searched));
  const std::size_t facets = line_facets(options.places(), references.table()).size();
  if (facets > 1 && facets * arms.size() > kMostFacets)
    throw UserError(
        path + ".where",
        fmt::format("leaves {} panels, one for each arm and value of the swept paths that are neither x nor "
                    "y; needs at most {}",
                    facets * arms.size(), kMostFacets));
}

HeatMap build_heat_map(const HeatMapOptions& options, const FigureSource& source) {
  const std::string &x = options.x, &y = options.y;
  const PlottedValue metric(options.value, source.table);
  const std::vector<std::string> arms = shown_arms(options.arms, source.table);
  const DisplayNames names(source.run);
  std::vector<SweepValue> x_values, y_values;
  int most_seeds = 0, left_out = 0;
  CensoredCount censored;
  std::vector<const ResultRow*> shown;
  for (const ResultRow& row : source.table.rows) {
    if (!row.is_at(options.where) || std::find(arms.begin(), arms.end(), row.arm) == arms.end()) continue;
    place_of(*row.coordinate(x), x_values);
    place_of(*row.coordinate(y), y_values);
    most_seeds = std::max(most_seeds, row.seed + 1);
    left_out += row.state != "done" ? 1 : 0;
    shown.push_back(&row);
  }
  for (auto& [path, values] : {std::pair(x, &x_values), std::pair(y, &y_values)})
    if (path == source.table.searched_path)
      std::stable_sort(values->begin(), values->end(), [](const SweepValue& left, const SweepValue& right) {
        return left.number() < right.number();
      });

  HeatMap map;
  map.id = options.id;
  map.x_label = options.x_label.value_or(names.axis(x));
  map.y_label = options.y_label.value_or(names.axis(y));
  for (const SweepValue& value : x_values) map.x_names.push_back(names.bare_value(x, value));
  for (const SweepValue& value : y_values) map.y_names.push_back(names.bare_value(y, value));
  const bool is_share = options.at_least.has_value(), positive = metric.is_positive();
  std::vector<MapPlace> places;
  for (const std::string& arm : arms)
    for (const SweepPoint& facet : line_facets(options.places(), source.table))
      places.push_back({arm, facet});
  std::vector<double> all;
  for (const MapPlace& place : places) {
    std::vector<std::vector<Interval>> cells(x_values.size() * y_values.size());
    for (const ResultRow* row : shown) {
      const std::optional<Interval> value = metric.of(*row, row->metrics);
      if (row->arm != place.arm || !row->is_at(place.facet) || row->state != "done" || !value) continue;
      cells[place_of(*row->coordinate(y), y_values) * x_values.size() +
            place_of(*row->coordinate(x), x_values)]
          .push_back(*value);
      ++censored.all;
      censored.censored += is_exact(*value) ? 0 : 1;
    }
    HeatMapPanel panel{
        place_text(place, shown_arm(names, source.table, place.arm), arms.size() > 1, names), {}, {}};
    for (const std::vector<Interval>& cell : cells) {
      panel.values.emplace_back();
      panel.intervals.emplace_back();
      panel.censored.push_back(false);
      if (cell.empty()) continue;
      bool is_open = false;
      const MeanEstimate estimate =
          cell_estimate(cell, options.at_least, metric, source.table.is_decided, is_open);
      panel.censored.back() = is_open;
      all.push_back(estimate.mean);
      panel.values.back() = estimate.mean;
      if (estimate.interval && std::isfinite(estimate.interval->low))
        panel.intervals.back() = {estimate.interval->low, estimate.interval->high};
    }
    if (most_seeds < 2) panel.intervals.clear();
    if (!metric.may_be_censored()) panel.censored.clear();
    map.panels.push_back(std::move(panel));
  }
  if (!is_share && !all.empty()) {
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    map.low = *low;
    // Cells that differ by rounding alone have one colour.
    const double rounding = kEqualCells * std::max(std::abs(*low), std::abs(*high));
    map.high = *high - *low > rounding ? *high : *low + 1;
  }
  const std::string label = options.value_label.value_or(names.axis(metric.text()));
  map.title = figure_title(options, source,
                           (is_share ? fmt::format("{} of at least {}", label, *options.at_least) : label));
  map.caption = scenario_sentences(map.title, source);
  map.value_label = is_share ? "share of seeds" : label;
  // A decided run adds seeds only to the cells of claims that are still open.
  const std::string seeds = fmt::format("{}{} seeds", source.table.is_decided ? "up to " : "", most_seeds);
  map.caption += is_share ? fmt::format("Share of {} with {} of at least {}", seeds, label, *options.at_least)
                          : fmt::format("{} over {} of {}",
                                        metric.may_be_censored() ? "Median"
                                        : positive               ? "Geometric mean"
                                                                 : "Mean",
                                        seeds, label);
  map.caption +=
      interval_text(map, positive && !is_share, is_share) + "." + censored_cells_text(censored, is_share);
  if (left_out > 0) map.caption += fmt::format(" Cells left out: {}.", left_out);
  map.caption += source.footnote;
  return map;
}

}  // namespace

FigureKind heat_map_kind() {
  return figure_kind("heat_map", "a grid over two swept paths for each arm", check_heat_map, build_heat_map);
}

}  // namespace moelab
