#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "app/cli/analysis_files.h"
#include "plots/figure.h"
#include "plots/heat_map.h"

namespace moelab {
namespace {

/// Cells of more experts are too narrow to be seen.
constexpr std::size_t kMostDrawnExperts = 256;
/// Cells of more rows and columns have no names.
constexpr std::size_t kMostNamedCells = 24, kMostNamedPairs = 10;

std::string layer_name(const LayerAnalysis& layer) {
  return fmt::format("layer {}", layer.layer);
}

/// " The lines are 6 of 16 layers; experts.csv has all." Empty where all are shown.
std::string shown_part(std::size_t shown, std::size_t all, const std::string& file) {
  return shown == all
             ? ""
             : fmt::format(" The figure shows {} of {} layers; {} has all of them.", shown, all, file);
}

/// Loads of the experts in falling order.
Figure load_curves(const ArrayAnalysis& analysis) {
  constexpr std::size_t kMostLines = 8;
  const std::vector<std::size_t> shown = spread_places(analysis.layers.size(), kMostLines);
  Figure figure;
  figure.id = "load_curves";
  figure.title = "Load of the experts in falling order";
  figure.caption =
      "n_e divided by its mean over experts, where n_e tokens chose expert e. Even loads are 1." +
      shown_part(shown.size(), analysis.layers.size(), "experts.csv");
  figure.x_label = "rank of the expert";
  figure.y_label = "load ÷ mean load";
  FigurePanel& panel = figure.panels.emplace_back();
  for (const std::size_t place : shown) {
    const LayerAnalysis& layer = analysis.layers[place];
    std::vector<double> load = layer.experts.at("load").get<std::vector<double>>();
    std::sort(load.begin(), load.end(), std::greater<>());
    FigureSeries& series = panel.series.emplace_back(FigureSeries{layer_name(layer), {}});
    for (std::size_t rank = 0; rank < load.size(); ++rank)
      series.points.push_back({static_cast<double>(rank + 1), load[rank] * static_cast<double>(load.size())});
  }
  return figure;
}

/// A metric of every layer, with its interval and its chance level.
Figure layer_profile(const ArrayAnalysis& analysis, const std::string& metric) {
  Figure figure;
  figure.id = "profile_" + metric;
  figure.title = metric + " of each layer";
  figure.x_label = "layer";
  figure.y_label = metric;
  FigureSeries values{"measured", {}}, chance{"chance", {}, SeriesLook::reference};
  bool has_band = false;
  for (const LayerAnalysis& layer : analysis.layers) {
    if (!layer.metrics.contains(metric)) continue;
    FigurePoint& point = values.points.emplace_back();
    point.x = layer.layer;
    point.mean = layer.metrics.at(metric).get<double>();
    if (layer.intervals.contains(metric)) {
      point.low = layer.intervals.at(metric)[0].get<double>();
      point.high = layer.intervals.at(metric)[1].get<double>();
      has_band = true;
    }
    if (layer.chance.contains(metric))
      chance.points.push_back({static_cast<double>(layer.layer), layer.chance.at(metric).get<double>()});
  }
  figure.caption = has_band ? "Bands are 95 % intervals of a bootstrap over documents." : "";
  if (!chance.points.empty())
    figure.caption += std::string(has_band ? " " : "") +
                      "Chance is the mean over uniform choices, or over domains permuted between documents.";
  FigurePanel& panel = figure.panels.emplace_back();
  panel.series.push_back(std::move(values));
  if (!chance.points.empty()) panel.series.push_back(std::move(chance));
  return figure;
}

/// Widens the colour scale to all values. A scale of equal ends is no scale.
void fit_scale(HeatMap& map) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const HeatMapPanel& panel : map.panels) {
    for (const std::optional<double>& value : panel.values) {
      if (!value) continue;
      low = std::min(low, *value);
      high = std::max(high, *value);
    }
  }
  map.low = std::isfinite(low) ? std::min(low, 0.0) : 0;
  map.high = std::isfinite(high) && high > map.low ? high : map.low + 1;
}

/// Rows come from above, as in a table.
HeatMapPanel panel_of(const std::string& name, const Json& matrix) {
  HeatMapPanel panel;
  panel.name = name;
  const Json& values = matrix.at("values");
  for (std::size_t row = values.size(); row-- > 0;) {
    for (const Json& value : values[row])
      panel.values.push_back(value.is_null() ? std::nullopt : std::optional(value.get<double>()));
  }
  return panel;
}

void set_names(HeatMap& map, const Json& matrix) {
  map.x_names = matrix.at("columns").get<std::vector<std::string>>();
  map.y_names = matrix.at("rows").get<std::vector<std::string>>();
  std::reverse(map.y_names.begin(), map.y_names.end());
  const bool is_square = map.x_names.size() == map.y_names.size();
  map.compact =
      std::max(map.x_names.size(), map.y_names.size()) > (is_square ? kMostNamedPairs : kMostNamedCells);
}

/// load ÷ mean load of each layer and expert.
HeatMap load_map(const ArrayAnalysis& analysis) {
  HeatMap map;
  map.id = "loads";
  map.title = "Load of every expert";
  map.caption = "load ÷ mean load: 1 is even, 0 is an expert without tokens.";
  map.x_label = "expert";
  map.y_label = "layer";
  map.value_label = "load ÷ mean load";
  HeatMapPanel& panel = map.panels.emplace_back();
  const std::size_t experts = analysis.layers.front().experts.at("load").size();
  for (std::size_t e = 0; e < experts; ++e) map.x_names.push_back(std::to_string(e));
  for (std::size_t place = analysis.layers.size(); place-- > 0;) {
    const LayerAnalysis& layer = analysis.layers[place];
    map.y_names.push_back(std::to_string(layer.layer));
    for (const Json& load : layer.experts.at("load"))
      panel.values.emplace_back(load.get<double>() * static_cast<double>(experts));
  }
  map.compact = std::max(experts, analysis.layers.size()) > kMostNamedCells;
  fit_scale(map);
  return map;
}

struct MatrixFigure {
  const char *matrix, *title, *caption, *x_label, *y_label, *value_label;
};

constexpr std::array<MatrixFigure, 3> kLayerMatrices = {{
    {"domain", "Share of a domain's tokens that chose the expert", "Rows sum to K.", "expert", "domain",
     "share of tokens"},
    {"domain_divergence", "Divergence of the mean routing of two domains",
     "Jensen-Shannon divergence in nats.", "domain", "domain", "nats"},
    {"co_activation", "Experts that are chosen together",
     "n_ij ÷ n_i: of the tokens that chose the expert of the row, the share that chose the other one, too.",
     "other expert", "expert", "share of tokens"},
}};

constexpr std::array<MatrixFigure, 2> kLayerPairs = {{
    {"layer_nmi", "Agreement of the first choices of two layers",
     "Normalised mutual information: 1 if one layer's first choice tells the other's.", "layer", "layer",
     "NMI"},
    {"same_name_share", "Experts of equal number in two layers",
     "The share of a token's experts that have the same numbers in both layers. Chance is K ÷ E.", "layer",
     "layer", "share"},
}};

HeatMap map_of(const MatrixFigure& figure) {
  HeatMap map;
  map.id = figure.matrix;
  map.title = figure.title;
  map.caption = figure.caption;
  map.x_label = figure.x_label;
  map.y_label = figure.y_label;
  map.value_label = figure.value_label;
  return map;
}

bool is_drawn(const Json& matrix) {
  return matrix.at("columns").size() <= kMostDrawnExperts && matrix.at("rows").size() <= kMostDrawnExperts;
}

}  // namespace

std::vector<std::size_t> spread_places(std::size_t count, std::size_t most) {
  std::vector<std::size_t> places;
  const std::size_t shown = std::min(count, most);
  for (std::size_t i = 0; i < shown; ++i)
    places.push_back(shown == 1 ? 0 : (i * (count - 1) + (shown - 1) / 2) / (shown - 1));
  return places;
}

std::vector<Drawing> analysis_drawings(const ArrayAnalysis& analysis) {
  std::vector<Drawing> drawings;
  const std::size_t experts = analysis.layers.front().experts.at("load").size();
  if (experts < 2) return drawings;
  drawings.push_back(drawing_of(load_curves(analysis)));
  if (experts <= kMostDrawnExperts) drawings.push_back(drawing_of(load_map(analysis)));
  for (const char* const metric :
       {"expert_load_max_violation", "dead_experts", "routing_entropy", "topk_cluster_purity",
        "top1_cluster_nmi", "token_specialisation", "repeat_any", "routing_saturation"}) {
    const auto count = std::count_if(analysis.layers.begin(), analysis.layers.end(),
                                     [&](const auto& layer) { return layer.metrics.contains(metric); });
    if (count > 1) drawings.push_back(drawing_of(layer_profile(analysis, metric)));
  }
  constexpr std::size_t kMostPanels = 6;
  for (const MatrixFigure& figure : kLayerMatrices) {
    std::vector<const LayerAnalysis*> with;
    for (const LayerAnalysis& layer : analysis.layers) {
      if (layer.matrices.contains(figure.matrix) && is_drawn(layer.matrices.at(figure.matrix)))
        with.push_back(&layer);
    }
    if (with.empty()) continue;
    HeatMap map = map_of(figure);
    set_names(map, with.front()->matrices.at(figure.matrix));
    const std::vector<std::size_t> shown = spread_places(with.size(), kMostPanels);
    for (const std::size_t place : shown)
      map.panels.push_back(panel_of(layer_name(*with[place]), with[place]->matrices.at(figure.matrix)));
    map.caption += shown_part(shown.size(), with.size(), std::string(figure.matrix) + ".csv");
    fit_scale(map);
    drawings.push_back(drawing_of(map));
  }
  for (const MatrixFigure& figure : kLayerPairs) {
    if (!analysis.matrices.contains(figure.matrix) || !is_drawn(analysis.matrices.at(figure.matrix)))
      continue;
    HeatMap map = map_of(figure);
    set_names(map, analysis.matrices.at(figure.matrix));
    const std::string by_chance = std::string(figure.matrix) + "_chance";
    const bool has_chance = analysis.matrices.contains(by_chance);
    map.panels.push_back(panel_of(has_chance ? "measured" : "", analysis.matrices.at(figure.matrix)));
    if (has_chance)
      map.panels.push_back(
          panel_of("by chance: rows of one layer shuffled", analysis.matrices.at(by_chance)));
    fit_scale(map);
    drawings.push_back(drawing_of(map));
  }
  return drawings;
}

}  // namespace moelab
