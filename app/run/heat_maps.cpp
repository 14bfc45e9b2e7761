#include "app/run/heat_maps.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/scenario/sweep_values.h"
#include "plots/labels.h"

namespace moelab {
namespace {

/// The place of `value`, which is added where it is new.
std::size_t place_of(const SweepValue& value, std::vector<SweepValue>& values) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
  values.push_back(value);
  return values.size() - 1;
}

std::vector<std::string> names_of(const std::vector<SweepValue>& values) {
  std::vector<std::string> names;
  for (const SweepValue& value : values) names.push_back(value_text(value));
  return names;
}

/// The seeds of one cell of the map.
struct CellSeeds {
  int count = 0;
  double sum = 0;
};

}  // namespace

HeatMap build_heat_map(const Json& description, const RunResults& results) {
  const std::string x = description.at("x"), y = description.at("y"), metric = description.at("value");
  const SweepPoint where = read_point(description.value("where", Json::object()));
  const std::vector<std::string> arms = description.contains("arms")
                                            ? description.at("arms").get<std::vector<std::string>>()
                                            : results.table.arms;
  std::vector<SweepValue> x_values, y_values;
  int most_seeds = 0, left_out = 0;
  std::vector<const ResultRow*> shown;
  for (const ResultRow& row : results.table.rows) {
    if (!row.is_at(where) || std::find(arms.begin(), arms.end(), row.arm) == arms.end()) continue;
    place_of(*row.coordinate(x), x_values);
    place_of(*row.coordinate(y), y_values);
    most_seeds = std::max(most_seeds, row.seed + 1);
    left_out += row.state != "done" ? 1 : 0;
    shown.push_back(&row);
  }

  HeatMap map;
  map.id = description.at("id");
  map.title = description.value("title", results.plan.value("title", ""));
  map.x_label = description.value("x_label", axis_label(x));
  map.y_label = description.value("y_label", axis_label(y));
  map.x_names = names_of(x_values);
  map.y_names = names_of(y_values);
  const bool is_share = description.contains("at_least");
  std::vector<double> all;
  for (const std::string& arm : arms) {
    std::vector<CellSeeds> cells(x_values.size() * y_values.size());
    for (const ResultRow* row : shown) {
      const auto value = row->metrics.find(metric);
      if (row->arm != arm || row->state != "done" || value == row->metrics.end()) continue;
      CellSeeds& cell = cells[place_of(*row->coordinate(y), y_values) * x_values.size() +
                              place_of(*row->coordinate(x), x_values)];
      ++cell.count;
      cell.sum += !is_share                                                   ? value->second
                  : value->second >= description.at("at_least").get<double>() ? 1
                                                                              : 0;
    }
    HeatMapPanel panel{arm, {}};
    for (const CellSeeds& cell : cells) {
      if (cell.count == 0) {
        panel.values.emplace_back();
        continue;
      }
      all.push_back(cell.sum / cell.count);
      panel.values.emplace_back(all.back());
    }
    map.panels.push_back(std::move(panel));
  }
  if (!is_share && !all.empty()) {
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    map.low = *low;
    map.high = *high > *low ? *high : *low + 1;
  }
  if (const std::string source = results.plan.value("source", ""); !source.empty())
    map.caption = source + ". ";
  const std::string label = description.value("value_label", axis_label(metric));
  map.caption += is_share ? fmt::format("Share of {} seeds with {} of at least {}.", most_seeds, label,
                                        description.at("at_least").dump())
                          : fmt::format("Mean over {} seeds of the {}.", most_seeds, label);
  if (left_out > 0) map.caption += fmt::format(" Cells left out: {}.", left_out);
  map.caption += builds_footnote(results);
  return map;
}

}  // namespace moelab
