#include "plots/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "plots/page.h"

namespace moelab {
namespace {

constexpr std::size_t kColumns = 2;
constexpr double kMapMargin = 4, kMapName = 11;
/// Gnuplot's `ps` of points, ends of rows and means, and how much smaller its unit is on the SVG terminal.
constexpr double kPointSize = 0.14, kHeadSize = 0.3, kCrossSize = 0.35, kSvgUnit = 2.1;
/// Left of the panels and below them, where there are labels.
constexpr double kLabelRoom = kLabelLine + 3;
/// Share of the range that is left free around the points.
constexpr double kPadding = 0.03;
constexpr const char* kGrey = "D0D0D0";

std::string colour_of(int place) {
  return place < 0 ? kGrey : kAreaColours[static_cast<std::size_t>(place)];
}

/// The colour, pale on white: opaque, since edges of areas that shine through each other show.
std::string pale_colour_of(int place) {
  constexpr double kShare = 0.28;
  const unsigned long own = std::stoul(colour_of(place), nullptr, 16);
  unsigned long pale = 0;
  for (const int shift : {16, 8, 0}) {
    const double part = static_cast<double>((own >> shift) & 0xFF);
    pale |= static_cast<unsigned long>(std::lround(255 - kShare * (255 - part))) << shift;
  }
  return fmt::format("{:06X}", pale);
}

/// One row for each part of a panel, in the order in which embedding_csv writes them.
struct PanelRows {
  std::size_t region, point, mean, arrow, end;

  PanelRows(const EmbeddingPanel& panel, std::size_t first)
      : region(first),
        point(region + panel.regions.size()),
        mean(point + panel.points.size()),
        arrow(mean + panel.means.size()),
        end(arrow + panel.arrows.size()) {}
};

/// The labels that have a colour, by colour; then what else is drawn.
Legend embedding_legend(const Embedding& embedding) {
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
  std::vector<LegendEntry> entries;
  for (const auto& [colour, label] : labels)
    entries.push_back({fmt::format("{} {}", embedding.label, label), colour_of(colour), "", 7});
  if (any_grey) entries.push_back({"another " + embedding.label, kGrey, "", 7});
  if (any_mean) entries.push_back({embedding.mean_name, "000000", "", 2});
  if (any_arrow) entries.push_back({embedding.arrow_name, "000000", "1", 0});
  return Legend(std::move(entries), kWidth);
}

/// The clauses of `plot` for one panel.
std::string panel_clauses(const PanelRows& rows) {
  std::vector<std::string> clauses;
  const auto add = [&](std::size_t first, std::size_t end, const std::string& how) {
    if (end > first) clauses.push_back(fmt::format("data every ::{}::{} using {}", first, end - 1, how));
  };
  const int colours = static_cast<int>(kAreaColours.size());
  for (int colour = -1; colour < colours; ++colour)
    add(rows.region, rows.point,
        fmt::format("($6=={0} ? $3 : NaN):4:3:7:4:8 with boxxyerror lw 0.2 fc rgb '#{1}' fs solid 1 border "
                    "lc rgb '#{1}'",
                    colour, pale_colour_of(colour)));
  for (int colour = -1; colour < colours; ++colour)
    add(rows.point, rows.mean,
        fmt::format("3:($6=={} ? $4 : NaN) with points pt 7 ps dot_size lc rgb '#{}'", colour,
                    colour_of(colour)));
  add(rows.arrow, rows.end, "(0):(0):($6<0 ? NaN : $3):4 with vectors nohead lw 0.8 lc rgb '#000000'");
  for (int colour = 0; colour < colours; ++colour)
    add(rows.arrow, rows.end,
        fmt::format("3:($6=={} ? $4 : NaN) with points pt 7 ps head_size lc rgb '#{}'", colour,
                    colour_of(colour)));
  add(rows.mean, rows.arrow, "3:4 with points pt 2 ps cross_size lw 1.2 lc rgb '#000000'");
  if (clauses.empty()) clauses.emplace_back("NaN notitle");
  return fmt::format("plot {}\n", fmt::join(clauses, ", \\\n     "));
}

/// The panel's name, shortened so that its note has room.
std::string panel_heading(const EmbeddingPanel& panel, double width) {
  const std::string note = panel.note.empty() ? "" : " " + panel.note;
  return fitted_line(panel.name, kFontSize, width - text_width(note, kFontSize)) + note;
}

}  // namespace

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

std::string embedding_script(const Embedding& embedding) {
  const Heading heading(embedding.title, embedding.caption);
  const Legend legend = embedding_legend(embedding);
  const double label_room = embedding.x_label.empty() ? 0 : kLabelRoom;
  const double left_margin = kMapMargin + label_room;
  const double size = (kWidth - left_margin - kColumns * kMapMargin) / kColumns;
  // A lone panel stands in the middle of the page, with its labels.
  const bool is_lone = embedding.panels.size() == 1;
  const double first_left = is_lone ? (kWidth - size) / 2 : left_margin;
  const double legend_bottom = heading.caption_height() + kMapMargin;
  const double bottom = legend_bottom + legend.height() + kMapMargin + label_room,
               step = size + kMapName + kMapMargin;
  const std::size_t lines = (embedding.panels.size() + kColumns - 1) / kColumns;
  const double height = bottom + step * static_cast<double>(lines) + heading.title_height();
  const auto range = [&](double EmbeddingPoint::*coordinate) {
    const auto [low, high] = embedding_range(embedding, coordinate);
    return fmt::format("[{:.6g}:{:.6g}]", low, high);
  };

  std::string text = script_head(embedding.id, embedding.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(embedding.id + ".csv"));
  text += "set border 15 lw 0.6 lc rgb '#999999'\nunset tics\nunset key\n";
  text += fmt::format("set xrange {}\nset yrange {}\n", range(&EmbeddingPoint::x), range(&EmbeddingPoint::y));
  std::string plot = fmt::format(
      "unit = GPVAL_TERM eq 'svg' ? {} : 1\ndot_size = {} * unit\nhead_size = {} * unit\n"
      "cross_size = {} * unit\nset multiplot\n",
      kSvgUnit, kPointSize, kHeadSize, kCrossSize);
  std::size_t first = 1;  // row 0 of the CSV is its header
  for (std::size_t p = 0; p < embedding.panels.size(); ++p) {
    const std::size_t line = p / kColumns;
    const double left = first_left + static_cast<double>(p % kColumns) * (size + kMapMargin);
    const double low = bottom + step * static_cast<double>(lines - 1 - line);
    plot += panel_margins(left, left + size, low, low + size, kWidth, height) + "unset label\nunset arrow\n";
    plot += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left\n",
                        quoted(panel_heading(embedding.panels[p], size)), left / kWidth,
                        (low + size + 0.5 * kMapName) / height);
    if (p == 0) {
      const double all = step * static_cast<double>(lines) - kMapMargin;
      plot += heading.script(height) + legend.script(legend_bottom, height);
      plot += centred_label({fitted_line(embedding.x_label, kFontSize, kWidth - left_margin)},
                            is_lone ? kWidth / 2 : (left_margin + kWidth) / 2, bottom - kLabelRoom / 2,
                            kWidth, height);
      plot += centred_label({fitted_line(embedding.y_label, kFontSize, all)},
                            first_left - label_room + kLabelLine / 2, bottom + all / 2, kWidth, height, true);
    }
    const PanelRows rows(embedding.panels[p], first);
    plot += panel_clauses(rows);
    first = rows.end;
  }
  plot += "unset multiplot";
  return text + on_terminals(embedding.id, height, plot);
}

Drawing drawing_of(const Embedding& embedding) {
  const bool moves = std::any_of(embedding.panels.begin(), embedding.panels.end(),
                                 [](const EmbeddingPanel& panel) { return panel.frames.size() > 1; });
  return {embedding.id,
          embedding.title,
          embedding.caption,
          embedding_csv(embedding),
          embedding_script(embedding),
          moves ? moving_embedding_html(embedding) : ""};
}

namespace {

using PlaneJson = nlohmann::ordered_json;

/// A number to the digits that a picture needs.
double drawn_number(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

PlaneJson places_json(const std::vector<EmbeddingPoint>& points) {
  PlaneJson places = PlaneJson::array();
  for (const EmbeddingPoint& point : points) places.push_back({drawn_number(point.x), drawn_number(point.y)});
  return places;
}

PlaneJson frame_json(const EmbeddingFrame& frame) {
  PlaneJson scores = PlaneJson::array();
  for (const ScoreInPlane& score : frame.scores)
    scores.push_back({drawn_number(score.x), drawn_number(score.y), drawn_number(score.offset)});
  return {{"name", frame.name}, {"scores", std::move(scores)}, {"labels", frame.labels}};
}

}  // namespace

std::string moving_embedding_html(const Embedding& embedding) {
  PlaneJson panels = PlaneJson::array();
  for (const EmbeddingPanel& panel : embedding.panels) {
    PlaneJson frames = PlaneJson::array();
    for (const EmbeddingFrame& frame : panel.frames) frames.push_back(frame_json(frame));
    // What does not move is a frame without scores.
    if (frames.empty()) {
      EmbeddingFrame still;
      for (const EmbeddingPoint& point : panel.points) still.labels.push_back(point.label);
      frames.push_back(frame_json(still));
    }
    panels.push_back({{"name", panel.name + (panel.note.empty() ? "" : " " + panel.note)},
                      {"points", places_json(panel.points)},
                      {"means", places_json(panel.means)},
                      {"frames", std::move(frames)}});
  }
  const auto [x_low, x_high] = embedding_range(embedding, &EmbeddingPoint::x);
  const auto [y_low, y_high] = embedding_range(embedding, &EmbeddingPoint::y);
  return page_data({{"draw", "plane"},
                    {"title", embedding.title},
                    {"label", embedding.label},
                    {"meanName", embedding.mean_name},
                    {"arrowName", embedding.arrow_name},
                    {"xLabel", embedding.x_label},
                    {"yLabel", embedding.y_label},
                    {"box", {x_low, x_high, y_low, y_high}},
                    {"colours", embedding.colours},
                    {"panels", std::move(panels)}});
}

}  // namespace moelab
