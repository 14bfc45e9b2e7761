#include "bindings/figure_json.h"

#include <algorithm>
#include <array>

#include "app/figures/claim.h"
#include "app/figures/crossing.h"
#include "app/figures/embedding.h"
#include "app/figures/heat_map.h"
#include "app/figures/lines.h"
#include "app/run/figures.h"
#include "sim/base/error.h"

namespace moelab::python {
namespace {

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json optional_pair(const std::optional<std::pair<double, double>>& pair) {
  return pair ? Json::array({pair->first, pair->second}) : Json();
}

Json numbers_json(const std::vector<std::optional<double>>& values) {
  Json numbers = Json::array();
  for (const std::optional<double>& value : values) numbers.push_back(optional_number(value));
  return numbers;
}

const char* look_name(SeriesLook look) {
  switch (look) {
    case SeriesLook::line:
      return "line";
    case SeriesLook::marks:
      return "marks";
    case SeriesLook::reference:
      break;
  }
  return "reference";
}

Json series_json(const FigureSeries& line) {
  Json points = Json::array();
  for (const FigurePoint& point : line.points) {
    points.push_back({{"x", point.x},
                      {"mean", optional_number(point.mean)},
                      {"low", optional_number(point.low)},
                      {"high", optional_number(point.high)},
                      {"seeds", numbers_json(point.seeds)},
                      {"censored", point.censored}});
  }
  return {{"name", line.name}, {"look", look_name(line.look)}, {"points", std::move(points)}};
}

Json data_of(const Figure& figure) {
  Json panels = Json::array();
  for (const FigurePanel& panel : figure.panels) {
    Json series = Json::array();
    for (const FigureSeries& line : panel.series) series.push_back(series_json(line));
    panels.push_back({{"name", panel.name}, {"series", std::move(series)}});
  }
  return {{"kind", "lines"},
          {"id", figure.id},
          {"title", figure.title},
          {"caption", figure.caption},
          {"x_label", figure.x_label},
          {"y_label", figure.y_label},
          {"x_log", figure.x_log},
          {"y_log", figure.y_log},
          {"x_range", optional_pair(figure.x_range)},
          {"y_range", optional_pair(figure.y_range)},
          {"x_categories", figure.x_categories},
          {"panels", std::move(panels)}};
}

Json data_of(const HeatMap& map) {
  Json panels = Json::array();
  for (const HeatMapPanel& panel : map.panels) {
    Json intervals = Json::array();
    for (const auto& interval : panel.intervals) intervals.push_back(optional_pair(interval));
    panels.push_back({{"name", panel.name},
                      {"values", numbers_json(panel.values)},
                      {"intervals", std::move(intervals)},
                      {"censored", panel.censored}});
  }
  return {{"kind", "heat_map"},
          {"id", map.id},
          {"title", map.title},
          {"caption", map.caption},
          {"x_label", map.x_label},
          {"y_label", map.y_label},
          {"value_label", map.value_label},
          {"x_names", map.x_names},
          {"y_names", map.y_names},
          {"compact", map.compact},
          {"low", map.low},
          {"high", map.high},
          {"panels", std::move(panels)}};
}

Json data_of(const RatePanels& figure) {
  Json panels = Json::array(), references = Json::array();
  for (const std::vector<RateLine>& panel : figure.panels) {
    Json lines = Json::array();
    for (const RateLine& line : panel) {
      Json points = Json::array();
      for (const RatePoint& point : line.points) {
        points.push_back({{"x", point.x},
                          {"mean", optional_number(point.mean)},
                          {"low", optional_number(point.low)},
                          {"high", optional_number(point.high)},
                          {"fitted", optional_number(point.fitted)}});
      }
      lines.push_back({{"name", line.name}, {"slope", line.slope}, {"points", std::move(points)}});
    }
    panels.push_back(std::move(lines));
  }
  for (const auto& [slope, name] : figure.references)
    references.push_back({{"slope", slope}, {"name", name}});
  return {{"kind", "rate_panels"},      {"id", figure.id},           {"title", figure.title},
          {"caption", figure.caption},  {"x_label", figure.x_label}, {"y_label", figure.y_label},
          {"rows", figure.rows},        {"columns", figure.columns}, {"references", std::move(references)},
          {"panels", std::move(panels)}};
}

Json points_json(const std::vector<EmbeddingPoint>& points) {
  Json list = Json::array();
  for (const EmbeddingPoint& point : points)
    list.push_back({{"x", point.x}, {"y", point.y}, {"label", point.label}, {"colour", point.colour}});
  return list;
}

Json data_of(const Embedding& figure) {
  Json panels = Json::array();
  for (const EmbeddingPanel& panel : figure.panels) {
    Json regions = Json::array();
    for (const EmbeddingRegion& region : panel.regions)
      regions.push_back({{"x_low", region.x_low},
                         {"x_high", region.x_high},
                         {"y_low", region.y_low},
                         {"y_high", region.y_high},
                         {"label", region.label},
                         {"colour", region.colour}});
    panels.push_back({{"name", panel.name},
                      {"points", points_json(panel.points)},
                      {"regions", std::move(regions)},
                      {"note", panel.note},
                      {"means", points_json(panel.means)},
                      {"arrows", points_json(panel.arrows)}});
  }
  return {{"kind", "embedding"},
          {"id", figure.id},
          {"title", figure.title},
          {"caption", figure.caption},
          {"label", figure.label},
          {"mean_name", figure.mean_name},
          {"arrow_name", figure.arrow_name},
          {"x_label", figure.x_label},
          {"y_label", figure.y_label},
          {"x_range", optional_pair(embedding_range(figure, &EmbeddingPoint::x))},
          {"y_range", optional_pair(embedding_range(figure, &EmbeddingPoint::y))},
          {"panels", std::move(panels)}};
}

template <auto build>
Json built(const Json& description, const FigureSource& source) {
  return data_of(build(description, source));
}

/// The data of a kind of figure.
struct KindData {
  const char* kind;
  Json (*data)(const Json& description, const FigureSource& source);
};

constexpr std::array<KindData, 8> kKindData = {{
    {"lines", built<build_figure>},
    {"heat_map", built<build_heat_map>},
    {"rate_panels", built<build_rate_panels>},
    {"embedding", built<build_embedding>},
    {"cluster_map", built<build_cluster_map>},
    {"load_map", built<build_load_map>},
    {"claim", built<build_claim_figure>},
    {"crossing", built<build_crossing_figure>},
}};

}  // namespace

Json figure_json(const RunResults& results, const std::filesystem::path& directory, const std::string& id) {
  std::vector<std::string> ids;
  for (const Json& description : results.plan.at("figures")) {
    ids.push_back(description.at("id").get<std::string>());
    if (ids.back() != id) continue;
    const std::string& kind = kind_of(description).name;
    const auto found = std::find_if(kKindData.begin(), kKindData.end(),
                                    [&](const KindData& entry) { return entry.kind == kind; });
    if (found == kKindData.end())
      throw UserError("figure", "'" + id + "' is of kind '" + kind + "', which `moelab plot` alone draws");
    return found->data(description, figure_source(results, directory));
  }
  throw UserError("figure", ids.empty() ? "the run has no figures" : unknown_name("figure", id, ids));
}

}  // namespace moelab::python
