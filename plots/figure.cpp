#include "plots/figure.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plots/csv_cell.h"
#include "plots/page_data.h"
#include "plots/thinned.h"

namespace moelab {
namespace {

/// Of a figure on the page: some 400 kB.
constexpr std::size_t kMostNumbers = 8000;

std::string figure_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

nlohmann::ordered_json panel_json(const FigurePanel& panel) {
  using Json = nlohmann::ordered_json;
  Json series = Json::array();
  for (const FigureSeries& line : panel.series) {
    Json points = Json::array();
    for (const FigurePoint& point : line.points) {
      Json seeds = Json::array();
      for (const std::optional<double>& seed : point.seeds) seeds.push_back(number_json(seed));
      points.push_back({{"x", point.x},
                        {"mean", number_json(point.mean)},
                        {"low", number_json(point.low)},
                        {"high", number_json(point.high)},
                        {"seeds", std::move(seeds)},
                        {"censored", point.censored}});
    }
    series.push_back({{"name", line.name},
                      {"reference", line.look == SeriesLook::reference},
                      {"joined", line.look != SeriesLook::marks},
                      {"points", std::move(points)}});
  }
  return {{"name", panel.name}, {"series", std::move(series)}};
}

nlohmann::ordered_json range_json(const std::optional<std::pair<double, double>>& range) {
  return range ? nlohmann::ordered_json({range->first, range->second}) : nlohmann::ordered_json();
}

}  // namespace

bool is_within(double value, const std::optional<std::pair<double, double>>& range) {
  return !range || (value >= range->first && value <= range->second);
}

bool has_censored(const Figure& figure) {
  for (const FigurePanel& panel : figure.panels)
    for (const FigureSeries& series : panel.series)
      for (const FigurePoint& point : series.points)
        if (point.censored) return true;
  return false;
}

std::size_t seed_count(const Figure& figure) {
  std::size_t seeds = 0;
  for (const FigurePanel& panel : figure.panels)
    for (const FigureSeries& series : panel.series)
      for (const FigurePoint& point : series.points) seeds = std::max(seeds, point.seeds.size());
  return seeds;
}

std::string figure_csv(const Figure& figure) {
  const std::size_t seeds = seed_count(figure);
  const bool names_panels = figure.panels.size() > 1, censored = has_censored(figure);
  std::string text = names_panels ? "panel,series,x,mean,low,high" : "series,x,mean,low,high";
  for (std::size_t seed = 0; seed < seeds; ++seed) text += fmt::format(",seed_{}", seed);
  if (censored) text += ",censored";
  text += figure.x_categories.empty() ? "\n" : ",x_label\n";
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const FigurePoint& point : series.points) {
        if (names_panels) text += gnuplot_csv_cell(panel.name) + ",";
        text += fmt::format("{},{},{},{},{}", gnuplot_csv_cell(series.name), point.x,
                            figure_number(point.mean), figure_number(point.low), figure_number(point.high));
        for (std::size_t seed = 0; seed < seeds; ++seed)
          text += "," + (seed < point.seeds.size() ? figure_number(point.seeds[seed]) : "");
        if (censored) text += point.censored ? ",1" : ",0";
        if (!figure.x_categories.empty())
          text += "," + gnuplot_csv_cell(figure.x_categories.at(static_cast<std::size_t>(point.x)));
        text += "\n";
      }
    }
  }
  return text;
}

std::string figure_html(const Figure& figure) {
  nlohmann::ordered_json panels = nlohmann::ordered_json::array();
  for (const FigurePanel& panel : figure.panels) panels.push_back(panel_json(panel));
  return page_data({{"draw", "lines"},
                    {"title", figure.title},
                    {"xLabel", figure.x_label},
                    {"yLabel", figure.y_label},
                    {"xLog", figure.x_log},
                    {"yLog", figure.y_log},
                    {"xRange", range_json(figure.x_range)},
                    {"yRange", range_json(figure.y_range)},
                    {"xNames", figure.x_categories},
                    {"panels", std::move(panels)}});
}

Drawing drawing_of(const Figure& figure) {
  const Figure shown = thinned(figure, kMostNumbers);
  return {figure.id,
          figure.title,
          figure.caption,
          figure_csv(figure),
          figure_script(figure),
          figure_html(shown),
          shown.caption.substr(figure.caption.size())};
}

}  // namespace moelab
