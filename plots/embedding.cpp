#include "plots/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "plots/report/table.h"
#include "plots/texts.h"

namespace moelab {
namespace {

/// Side by side; panels of wider pages are about this wide.
constexpr std::size_t kLeastColumns = 2, kMostPlanes = 4;
constexpr double kPlaneWidth = 105;
constexpr double kMapMargin = 4, kMapName = 11;
/// Left of the panels and below them, if there are labels.
constexpr double kLabelRoom = kLabelLine + 3;
/// Share of the range that is left free around the points.
constexpr double kPadding = 0.03;

/// The labels that have a colour, by colour; then what else is drawn.
std::vector<SeriesStyle> embedding_entries(const Embedding& embedding) {
  std::map<int, int> labels;
  bool any_grey = false, any_mean = false, any_arrow = false;
  for (const EmbeddingPanel& panel : embedding.panels) {
    const auto add = [&](int colour, int label) {
      if (colour >= 0) labels.try_emplace(colour, label);
      any_grey = any_grey || colour < 0;
    };
    for (const EmbeddingPoint& point : panel.points) add(point.colour, point.label);
    for (const EmbeddingRegion& region : panel.regions) add(region.colour, region.label);
    any_mean = any_mean || !panel.means.empty();
    any_arrow = any_arrow || std::any_of(panel.arrows.begin(), panel.arrows.end(),
                                         [](const EmbeddingPoint& arrow) { return arrow.colour >= 0; });
  }
  std::vector<SeriesStyle> entries;
  std::vector<std::pair<int, int>> in_order;  // label and colour
  for (const auto& [colour, label] : labels) in_order.emplace_back(label, colour);
  std::sort(in_order.begin(), in_order.end());
  for (const auto& [label, colour] : in_order)
    entries.push_back({fmt::format("{} {}", embedding.label, label), area_colour(colour), "", 7});
  if (any_grey) entries.push_back({"other " + embedding.label + "s", area_colour(-1), "", 7});
  if (any_mean) entries.push_back({embedding.mean_name, "000000", "", kCross});
  if (any_arrow) entries.push_back({embedding.arrow_name, "000000", "1", 0});
  return entries;
}

}  // namespace

std::string area_colour(int colour) {
  return colour < 0 ? "D0D0D0" : kAreaColours[static_cast<std::size_t>(colour)];
}

std::string pale_area_colour(int colour) {
  constexpr double kShare = 0.28;
  const unsigned long own = std::stoul(area_colour(colour), nullptr, 16);
  unsigned long pale = 0;
  for (const int shift : {16, 8, 0}) {
    const double part = static_cast<double>((own >> shift) & 0xFF);
    pale |= static_cast<unsigned long>(std::lround(255 - kShare * (255 - part))) << shift;
  }
  return fmt::format("{:06X}", pale);
}

std::pair<double, double> embedding_range(const Embedding& embedding, double EmbeddingPoint::*coordinate) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const EmbeddingPanel& panel : embedding.panels)
    for (const std::vector<EmbeddingPoint>* points : {&panel.points, &panel.means})
      for (const EmbeddingPoint& point : *points) {
        low = std::min(low, point.*coordinate);
        high = std::max(high, point.*coordinate);
      }
  if (!(low < high)) return {-1, 1};
  const double padding = kPadding * (high - low);
  return {low - padding, high + padding};
}

std::string embedding_csv(const Embedding& embedding) {
  std::string text = fmt::format("panel,part,x,y,{},colour,x_high,y_high\n", embedding.label);
  for (const EmbeddingPanel& panel : embedding.panels) {
    const std::string name = gnuplot_csv_cell(panel.name);
    for (const EmbeddingRegion& region : panel.regions)
      text += fmt::format("{},region,{},{},{},{},{},{}\n", name, region.x_low, region.y_low, region.label,
                          region.colour, region.x_high, region.y_high);
    const auto add = [&](const char* part, const std::vector<EmbeddingPoint>& points) {
      for (const EmbeddingPoint& point : points)
        text += fmt::format("{},{},{},{},{},{},,\n", name, part, point.x, point.y, point.label, point.colour);
    };
    add("point", panel.points);
    add("mean", panel.means);
    add("arrow", panel.arrows);
  }
  return text;
}

EmbeddingLayout::EmbeddingLayout(const Embedding& embedding, Texts texts) {
  const bool is_whole = texts == Texts::all;
  set_page(is_whole ? embedding.style : FigureStyle(), kWidth);
  arrange(embedding, texts, 0);
  const std::optional<double> wanted = is_whole ? height_of(embedding.style) : std::nullopt;
  if (!wanted || panels.empty()) return;
  double rows = 1;
  for (const PanelPlace& panel : panels)
    rows += panel.left == panels.front().left && &panel != &panels.front() ? 1 : 0;
  arrange(embedding, texts, std::max((*wanted - height) / rows, 20 - panels.front().height));
}

void EmbeddingLayout::arrange(const Embedding& embedding, Texts texts, double extra) {
  panels.clear();
  const bool is_whole = texts == Texts::all;
  const double label_room = embedding.x_label.empty() ? 0 : kLabelRoom;
  const double left_margin = kMapMargin + label_room;
  const std::size_t across =
      is_whole ? std::clamp(static_cast<std::size_t>(width / kPlaneWidth), kLeastColumns, kMostPlanes) : 1;
  const auto columns = static_cast<double>(across);
  const double size = (width - left_margin - columns * kMapMargin) / columns, high = size + extra;
  // A lone panel stands in the middle of the page, together with its labels.
  const bool is_lone = is_whole && embedding.panels.size() == 1;
  const double first_left = is_lone ? (width - size) / 2 : left_margin;
  std::vector<std::string> panel_headings;
  for (const EmbeddingPanel& panel : embedding.panels)
    panel_headings.push_back(panel.name + (panel.note.empty() ? "" : " " + panel.note));
  const FittedNames names = fitted_names(panel_headings, kFontSize, size, 3, "P");
  std::size_t name_lines = 1;
  for (const std::vector<std::string>& lines : names.lines) name_lines = std::max(name_lines, lines.size());
  // The report's page names its panels itself.
  const double name_height = !is_whole ? 0 : kMapName + kLabelLine * static_cast<double>(name_lines - 1);
  const std::size_t lines = (embedding.panels.size() + across - 1) / across;
  const double step = high + name_height + kMapMargin, all = step * static_cast<double>(lines) - kMapMargin;
  const FittedNames x_label = fitted_names({embedding.x_label}, kFontSize, width - left_margin, 1, "X"),
                    y_label = fitted_names({embedding.y_label}, kFontSize, all, 1, "Y");
  const Legend legend(is_whole ? embedding_entries(embedding) : std::vector<SeriesStyle>(), width);
  caption = embedding.caption + names.key + x_label.key + y_label.key + legend.key();
  const Heading heading = is_whole ? Heading(embedding.style, embedding.title, caption, width) : Heading();
  const double legend_bottom = (is_whole ? heading.caption_height() : 0) + kMapMargin;
  const double bottom = legend_bottom + legend.height() + kMapMargin + label_room;
  height = bottom + step * static_cast<double>(lines) + heading.title_height();
  std::tie(x.low, x.high) = embedding_range(embedding, &EmbeddingPoint::x);
  std::tie(y.low, y.high) = embedding_range(embedding, &EmbeddingPoint::y);
  for (std::size_t p = 0; p < embedding.panels.size(); ++p) {
    PanelPlace panel{first_left + static_cast<double>(p % across) * (size + kMapMargin),
                     bottom + static_cast<double>(lines - 1 - p / across) * step, size, high};
    const std::vector<std::string>& name = names.lines[p];
    for (std::size_t line = 0; line < name.size(); ++line)
      panel.marks.push_back(
          {TextRole::panel, name[line], panel.left,
           panel.bottom + high + 0.5 * kMapName + kLabelLine * static_cast<double>(name.size() - 1 - line),
           false, 0, names.size});
    if (p == 0) {
      heading.place(panel.marks, width, height);
      legend.place(panel.marks, legend_bottom);
      place_centred(panel.marks, TextRole::x_label, x_label.lines.front(),
                    is_lone ? width / 2 : (left_margin + width) / 2, bottom - kLabelRoom / 2, false,
                    x_label.size);
      place_centred(panel.marks, TextRole::y_label, y_label.lines.front(),
                    first_left - label_room + kLabelLine / 2, bottom + all / 2, true, y_label.size);
    }
    panels.push_back(std::move(panel));
  }
}

namespace {

using PlaneJson = nlohmann::ordered_json;

PlaneJson points_json(const std::vector<EmbeddingPoint>& points) {
  PlaneJson list = PlaneJson::array();
  for (const EmbeddingPoint& point : points)
    list.push_back({{"x", point.x}, {"y", point.y}, {"label", point.label}, {"colour", point.colour}});
  return list;
}

PlaneJson regions_json(const std::vector<EmbeddingRegion>& regions) {
  PlaneJson list = PlaneJson::array();
  for (const EmbeddingRegion& region : regions)
    list.push_back({{"x_low", region.x_low},
                    {"x_high", region.x_high},
                    {"y_low", region.y_low},
                    {"y_high", region.y_high},
                    {"label", region.label},
                    {"colour", region.colour}});
  return list;
}

/// A number to the digits that a picture needs.
double painted_number(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

PlaneJson places_json(const std::vector<EmbeddingPoint>& points) {
  PlaneJson places = PlaneJson::array();
  for (const EmbeddingPoint& point : points)
    places.push_back({painted_number(point.x), painted_number(point.y)});
  return places;
}

PlaneJson frame_json(const EmbeddingFrame& frame) {
  PlaneJson scores = PlaneJson::array();
  for (const ScoreInPlane& score : frame.scores)
    scores.push_back({painted_number(score.x), painted_number(score.y), painted_number(score.offset)});
  return {{"name", frame.name}, {"scores", std::move(scores)}, {"labels", frame.labels}};
}

}  // namespace

nlohmann::ordered_json data_json(const Embedding& embedding) {
  PlaneJson panels = PlaneJson::array(), points = PlaneJson::array(), areas = PlaneJson::array();
  for (const EmbeddingPanel& panel : embedding.panels)
    panels.push_back({{"name", panel.name},
                      {"points", points_json(panel.points)},
                      {"regions", regions_json(panel.regions)},
                      {"note", panel.note},
                      {"means", points_json(panel.means)},
                      {"arrows", points_json(panel.arrows)}});
  // Grey comes last, where the index −1 of a list in Python is.
  for (std::size_t place = 0; place <= kAreaColours.size(); ++place) {
    const int colour = place < kAreaColours.size() ? static_cast<int>(place) : -1;
    points.push_back(area_colour(colour));
    areas.push_back(pale_area_colour(colour));
  }
  const EmbeddingLayout layout(embedding);
  return {{"kind", "embedding"},
          {"id", embedding.id},
          {"title", embedding.title},
          {"caption", layout.caption},
          {"label", embedding.label},
          {"mean_name", embedding.mean_name},
          {"arrow_name", embedding.arrow_name},
          {"x_label", embedding.x_label},
          {"y_label", embedding.y_label},
          {"x_range", pair_json(embedding_range(embedding, &EmbeddingPoint::x))},
          {"y_range", pair_json(embedding_range(embedding, &EmbeddingPoint::y))},
          {"panels", std::move(panels)},
          {"colours", {{"points", std::move(points)}, {"areas", std::move(areas)}}},
          {"layout", layout_json(layout)}};
}

nlohmann::ordered_json page_json(const Embedding& embedding) {
  if (std::none_of(embedding.panels.begin(), embedding.panels.end(),
                   [](const EmbeddingPanel& panel) { return panel.frames.size() > 1; }))
    return nullptr;
  PlaneJson panels = PlaneJson::array(), colours = PlaneJson::array(), legend = PlaneJson::array();
  for (const SeriesStyle& entry : embedding_entries(embedding))
    legend.push_back({{"name", entry.name}, {"style", style_json(entry)}});
  for (const int colour : embedding.colours) colours.push_back(area_colour(colour));
  Embedding alone = embedding;
  const EmbeddingLayout all(embedding);
  for (const EmbeddingPanel& panel : embedding.panels) {
    PlaneJson frames = PlaneJson::array();
    for (const EmbeddingFrame& frame : panel.frames) frames.push_back(frame_json(frame));
    // A panel that does not move has one frame without scores.
    if (frames.empty()) {
      EmbeddingFrame still;
      for (const EmbeddingPoint& point : panel.points) still.labels.push_back(point.label);
      frames.push_back(frame_json(still));
    }
    alone.panels = {panel};
    EmbeddingLayout layout(alone, EmbeddingLayout::Texts::axes);
    layout.x = all.x;
    layout.y = all.y;
    panels.push_back({{"name", math_text(panel.name + (panel.note.empty() ? "" : " " + panel.note))},
                      {"points", places_json(panel.points)},
                      {"means", places_json(panel.means)},
                      {"frames", std::move(frames)},
                      {"layout", layout_json(layout)}});
  }
  return {{"kind", "embedding"},           {"title", embedding.title}, {"label", embedding.label},
          {"colours", std::move(colours)}, {"grey", area_colour(-1)},  {"legend", std::move(legend)},
          {"panels", std::move(panels)}};
}

}  // namespace moelab
