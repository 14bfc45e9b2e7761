#include "app/figures/load_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/figures/display_names.h"
#include "app/figures/saved_arrays.h"
#include "app/figures/shown_arms.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// An expert is dead that serves less than this share of its fair part, 1/E.
constexpr double kDeadShare = 0.1;
constexpr std::size_t kMostColumns = 40;

void check_load_map(const References& references, const Json& figure, const std::string& path) {
  check_saved_arrays(references, figure, "routing_steps", path);
}

/// An arm's loads (T, E) at its recorded steps.
struct RecordedLoads {
  std::string name;
  std::vector<int> steps;
  Matrix loads;

  /// The last record up to that step; none before the first or after the end.
  std::optional<Eigen::Index> record_at(int step) const {
    if (steps.empty() || step < steps.front() || step > steps.back()) return std::nullopt;
    return std::upper_bound(steps.begin(), steps.end(), step) - steps.begin() - 1;
  }
};

/// The steps that some arm recorded, kMostColumns at most, evenly, the last included.
std::vector<int> shown_columns(const std::vector<RecordedLoads>& arms) {
  std::set<int> all;
  for (const RecordedLoads& arm : arms) all.insert(arm.steps.begin(), arm.steps.end());
  const std::vector<int> steps(all.begin(), all.end());
  const std::size_t stride = (steps.size() + kMostColumns - 1) / kMostColumns;
  std::vector<int> shown;
  for (std::size_t t = steps.empty() ? 0 : (steps.size() - 1) % stride; t < steps.size(); t += stride)
    shown.push_back(steps[t]);
  return shown;
}

/// The loads at these steps, of as many experts as the arm with most has; the highest of all is kept.
HeatMapPanel panel_of(const RecordedLoads& arm, const std::vector<int>& steps, Eigen::Index experts,
                      double& high) {
  HeatMapPanel panel{arm.name, {}};
  for (Eigen::Index e = 0; e < experts; ++e)
    for (const int step : steps) {
      const std::optional<Eigen::Index> record = arm.record_at(step);
      panel.values.emplace_back();
      if (!record || e >= arm.loads.cols()) continue;
      const double load = arm.loads(*record, e);
      high = std::max(high, load);
      if (load * static_cast<double>(arm.loads.cols()) >= kDeadShare) panel.values.back() = load;
    }
  return panel;
}

Drawing draw_load_map(const Json& figure, const FigureSource& source) {
  return drawing_of(build_load_map(figure, source));
}

}  // namespace

FigureKind load_map_kind() {
  return {
      "load_map",
      "each expert's load over training, dead ones grey, for each arm, of its first seed (needs \"save\": "
      "[\"routing_steps\"])",
      {{"x_label", Shape::text(), "label of the x axis", kOptional},
       {"y_label", Shape::text(), "label of the y axis", kOptional}},
      check_load_map,
      draw_load_map};
}

HeatMap build_load_map(const Json& description, const FigureSource& source) {
  const DisplayNames display(source.plan);
  HeatMap map;
  map.compact = true;
  map.id = description.at("id");
  map.title = figure_title(description, source, "load of the experts over training");
  map.x_label = description.value("x_label", display.axis("step"));
  map.y_label = description.value("y_label", "expert");
  map.value_label = "share of the rows";
  map.high = 0;
  const Json where = description.value("where", Json::object());
  std::size_t left_out = 0;
  std::vector<const ResultRow*> shown;
  std::vector<RecordedLoads> arms;
  Eigen::Index experts = 0;
  for (const std::string& arm : own_shown_arms(description, source.table)) {
    const ResultRow* const row = shown_row(source.table, arm, where);
    if (row == nullptr) {
      ++left_out;
      continue;
    }
    shown.push_back(row);
    arms.push_back({display.arm(arm), read_cluster_labels(source.array(row->cell, "recorded_steps")),
                    read_rows(source.array(row->cell, "expert_load_steps"))});
    if (arms.back().steps.empty() ||
        arms.back().loads.rows() != static_cast<Eigen::Index>(arms.back().steps.size()))
      throw UserError("figures." + map.id, "arm '" + arm + "' has other numbers of steps and of loads");
    experts = std::max(experts, arms.back().loads.cols());
  }
  const std::vector<int> steps = shown_columns(arms);
  for (const int step : steps) map.x_names.push_back(std::to_string(step));
  for (Eigen::Index e = 0; e < experts; ++e) map.y_names.push_back(std::to_string(e));
  bool is_uneven = false;
  for (const RecordedLoads& arm : arms) {
    map.panels.push_back(panel_of(arm, steps, experts, map.high));
    is_uneven = is_uneven || arm.loads.cols() != experts || arm.steps.back() != steps.back();
  }
  if (map.high <= 0) map.high = 1;
  map.caption =
      scenario_sentences(map.title, source) +
      "Share of the test rows that each expert gets at the recorded steps, first seed; grey: dead, below a "
      "tenth of a fair share" +
      (is_uneven ? ", or not there, where others have more experts or steps." : ".") +
      shown_points_text(source.table, shown, where, display);
  if (left_out > 0) map.caption += fmt::format(" Panels left out, no cell done: {}.", left_out);
  map.caption += source.footnote;
  return map;
}

}  // namespace moelab
