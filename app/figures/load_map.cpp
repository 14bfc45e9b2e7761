#include "app/figures/load_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/figures/display_names.h"
#include "app/figures/saved_arrays.h"
#include "app/figures/shown_arms.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// An expert is dead that serves less than this share of its fair part, 1/E.
constexpr double kDeadShare = 0.1;
constexpr Eigen::Index kMostColumns = 40;

void check_load_map(const References& references, const Json& figure, const std::string& path) {
  check_saved_arrays(references, figure, "routing_steps", path);
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
  for (const std::string& arm : own_shown_arms(description, source.table)) {
    const ResultRow* const row = shown_row(source.table, arm, where);
    if (row == nullptr) {
      ++left_out;
      continue;
    }
    shown.push_back(row);
    const std::vector<int> steps = read_cluster_labels(source.array(row->cell, "recorded_steps"));
    const Matrix loads = read_rows(source.array(row->cell, "expert_load_steps"));  // (T, E)
    const Eigen::Index stride = (loads.rows() + kMostColumns - 1) / kMostColumns;
    std::vector<std::string> names;
    for (Eigen::Index t = (loads.rows() - 1) % stride; t < loads.rows(); t += stride)
      names.push_back(std::to_string(steps.at(static_cast<std::size_t>(t))));
    if (!map.panels.empty() &&
        (names != map.x_names || loads.cols() != static_cast<Eigen::Index>(map.y_names.size())))
      throw UserError("figures." + map.id, "arm '" + arm + "' has other recorded steps or experts");
    map.x_names = names;
    map.y_names.clear();
    HeatMapPanel panel{display.arm(arm), {}};
    for (Eigen::Index e = 0; e < loads.cols(); ++e) {
      map.y_names.push_back(std::to_string(e));
      for (Eigen::Index t = (loads.rows() - 1) % stride; t < loads.rows(); t += stride) {
        const double load = loads(t, e);
        const bool is_dead = load * static_cast<double>(loads.cols()) < kDeadShare;
        panel.values.push_back(is_dead ? std::nullopt : std::optional(load));
        map.high = std::max(map.high, load);
      }
    }
    map.panels.push_back(std::move(panel));
  }
  if (map.high <= 0) map.high = 1;
  map.caption =
      scenario_sentences(map.title, source) +
      "Share of the test rows that each expert gets at the recorded steps, first seed; grey: dead, below a "
      "tenth of a fair share." +
      shown_points_text(source.table, shown, where, display);
  if (left_out > 0) map.caption += fmt::format(" Panels left out, no cell done: {}.", left_out);
  map.caption += source.footnote;
  return map;
}

}  // namespace moelab
