#include "plots/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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
/// A spread below this share of the coordinates is rounding.
constexpr double kLeastSpread = 1e-5;

/// What is drawn: labels by their look, in the order of the labels; then what else.
struct EmbeddingEntries {
  std::vector<SeriesStyle> labels = {}, others = {};
};

/// With `all_frames`, also the labels that points have at other steps.
EmbeddingEntries embedding_entries(const Embedding& embedding, bool all_frames = false) {
  std::map<int, int> looks;  // by label
  std::set<int> grey;
  bool any_mean = false, any_arrow = false;
  const auto add = [&](int colour, int label) {
    if (colour >= 0)
      looks.try_emplace(label, colour);
    else
      grey.insert(label);
  };
  for (const EmbeddingPanel& panel : embedding.panels) {
    for (const EmbeddingPoint& point : panel.points) add(point.colour, point.label);
    for (const EmbeddingRegion& region : panel.regions) add(region.colour, region.label);
    if (all_frames)
      for (const EmbeddingFrame& frame : panel.frames)
        for (const int label : frame.labels) add(embedding.colours[static_cast<std::size_t>(label)], label);
    any_mean = any_mean || !panel.means.empty();
    any_arrow = any_arrow || std::any_of(panel.arrows.begin(), panel.arrows.end(),
                                         [](const EmbeddingPoint& arrow) { return arrow.colour >= 0; });
  }
  EmbeddingEntries entries;
  for (const auto& [label, colour] : looks)
    entries.labels.push_back({fmt::format("{}", label), area_colour(colour), "", area_marker(colour)});
  if (!grey.empty())
    entries.others.push_back(
        {fmt::format("{} other {}{}", grey.size(), embedding.label, grey.size() == 1 ? "" : "s"),
         area_colour(-1), "", area_marker(-1)});
  if (any_mean) entries.others.push_back({embedding.mean_name, "000000", "", kCross});
  if (any_arrow) entries.others.push_back({embedding.arrow_name, "000000", "1", 0});
  return entries;
}

/// The looks of all places, up to the last one that is used.
int look_count(const Embedding& embedding) {
  int most = 0;
  for (const EmbeddingPanel& panel : embedding.panels) {
    for (const std::vector<EmbeddingPoint>* points : {&panel.points, &panel.arrows})
      for (const EmbeddingPoint& point : *points) most = std::max(most, point.colour + 1);
    for (const EmbeddingRegion& region : panel.regions) most = std::max(most, region.colour + 1);
  }
  return most;
}

}  // namespace

std::string area_colour(int colour) {
  return colour < 0 ? "D0D0D0" : kAreaColours[static_cast<std::size_t>(colour) % kAreaColours.size()];
}

int area_marker(int colour) {
  return colour < 0 ? kMarkers.front() : kMarkers[static_cast<std::size_t>(colour) / kAreaColours.size()];
}

double area_share(int colour) {
  constexpr std::array<double, 6> kShares = {0.28, 0.44, 0.14, 0.36, 0.2, 0.52};
  return colour < 0 ? kShares.front() : kShares[static_cast<std::size_t>(colour) / kAreaColours.size()];
}

std::string pale_area_colour(int colour) {
  const unsigned long own = std::stoul(area_colour(colour), nullptr, 16);
  unsigned long pale = 0;
  for (const int shift : {16, 8, 0}) {
    const double part = static_cast<double>((own >> shift) & 0xFF);
    pale |= static_cast<unsigned long>(std::lround(255 - area_share(colour) * (255 - part))) << shift;
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
  if (low > high) return {-1, 1};
  const double middle = low + (high - low) / 2, farthest = std::max(std::abs(low), std::abs(high));
  if (high - low <= kLeastSpread * farthest) return {middle - 1, middle + 1};
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
  const std::size_t lines = (embedding.panels.size() + across - 1) / across;
  // The names of a row of panels have their own height. The report's page names its panels itself.
  std::vector<double> name_heights(lines, is_whole ? kMapName : 0);
  for (std::size_t p = 0; is_whole && p < names.lines.size(); ++p)
    name_heights[p / across] = std::max(
        name_heights[p / across],
        kMapName + kLabelLine * static_cast<double>(std::max<std::size_t>(names.lines[p].size(), 1) - 1));
  double all = -kMapMargin;
  for (const double name_height : name_heights) all += high + name_height + kMapMargin;
  const FittedNames x_label = fitted_names({embedding.x_label}, kFontSize, width - left_margin, 1, "X"),
                    y_label = fitted_names({embedding.y_label}, kFontSize, all, 1, "Y");
  const EmbeddingEntries entries = is_whole ? embedding_entries(embedding) : EmbeddingEntries();
  // Numbers are short: one heading says what they are.
  constexpr std::size_t kMostNumbers = 8;
  const Legend labels(entries.labels, width, kMostNumbers), others(entries.others, width);
  const double legend_height = others.height() + (entries.labels.empty() ? 0 : labels.height() + kLabelLine);
  caption = embedding.caption + names.key + x_label.key + y_label.key + others.key();
  const Heading heading = is_whole ? Heading(embedding.style, embedding.title, caption, width) : Heading();
  const double legend_bottom = (is_whole ? heading.caption_height() : 0) + kMapMargin;
  const double bottom = legend_bottom + legend_height + kMapMargin + label_room;
  height = bottom + all + kMapMargin + heading.title_height();
  std::tie(x.low, x.high) = embedding_range(embedding, &EmbeddingPoint::x);
  std::tie(y.low, y.high) = embedding_range(embedding, &EmbeddingPoint::y);
  double panel_bottom = bottom + all;
  for (std::size_t p = 0; p < embedding.panels.size(); ++p) {
    if (p % across == 0) panel_bottom -= high + name_heights[p / across] + (p == 0 ? 0 : kMapMargin);
    PanelPlace panel{first_left + static_cast<double>(p % across) * (size + kMapMargin), panel_bottom, size,
                     high};
    const std::vector<std::string>& name = names.lines[p];
    for (std::size_t line = 0; line < name.size(); ++line)
      panel.marks.push_back(
          {TextRole::panel, name[line], panel.left,
           panel.bottom + high + 0.5 * kMapName + kLabelLine * static_cast<double>(name.size() - 1 - line),
           false, 0, names.size});
    if (p == 0) {
      heading.place(panel.marks, width, height);
      others.place(panel.marks, legend_bottom);
      if (!entries.labels.empty()) {
        labels.place(panel.marks, legend_bottom + others.height());
        place_centred(panel.marks, TextRole::legend, {embedding.label}, width / 2,
                      legend_bottom + legend_height - kLabelLine / 2);
      }
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
  PlaneJson panels = PlaneJson::array(), points = PlaneJson::array(), areas = PlaneJson::array(),
            markers = PlaneJson::array();
  for (const EmbeddingPanel& panel : embedding.panels)
    panels.push_back({{"name", panel.name},
                      {"points", points_json(panel.points)},
                      {"regions", regions_json(panel.regions)},
                      {"note", panel.note},
                      {"means", points_json(panel.means)},
                      {"arrows", points_json(panel.arrows)}});
  // Grey comes last, where the index −1 of a list in Python is.
  const int looks = look_count(embedding);
  for (int place = 0; place <= looks; ++place) {
    const int colour = place < looks ? place : -1;
    points.push_back(area_colour(colour));
    areas.push_back(pale_area_colour(colour));
    markers.push_back(style_json({"", "", "", area_marker(colour)}).at("marker"));
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
          {"colours",
           {{"points", std::move(points)}, {"areas", std::move(areas)}, {"markers", std::move(markers)}}},
          {"layout", layout_json(layout)}};
}

nlohmann::ordered_json page_json(const Embedding& embedding) {
  if (std::none_of(embedding.panels.begin(), embedding.panels.end(),
                   [](const EmbeddingPanel& panel) { return panel.frames.size() > 1; }))
    return nullptr;
  PlaneJson panels = PlaneJson::array(), colours = PlaneJson::array(), legend = PlaneJson::array(),
            markers = PlaneJson::array(), shares = PlaneJson::array();
  const EmbeddingEntries entries = embedding_entries(embedding, true);
  for (const SeriesStyle& entry : entries.labels)
    legend.push_back({{"name", embedding.label + " " + entry.name}, {"style", style_json(entry)}});
  for (const SeriesStyle& entry : entries.others)
    legend.push_back({{"name", entry.name}, {"style", style_json(entry)}});
  for (const int colour : embedding.colours) {
    colours.push_back(area_colour(colour));
    markers.push_back(style_json({"", "", "", area_marker(colour)}).at("marker"));
    shares.push_back(area_share(colour));
  }
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
  return {{"kind", "embedding"},           {"title", embedding.title},    {"label", embedding.label},
          {"colours", std::move(colours)}, {"grey", area_colour(-1)},     {"markers", std::move(markers)},
          {"shares", std::move(shares)},   {"legend", std::move(legend)}, {"panels", std::move(panels)}};
}

}  // namespace moelab
